import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { nextTick } from 'node:process'
import type { Failure } from '../../contract/errors.ts'

/** How many requests may wait for the one before them: on one connection, and on all. */
export const maxWaitingOnConnection = 250
export const maxWaiting = 2_000
/** How long a closing connection lingers, so that its client can read the last answer. */
const lingerMs = 500
/** How long a new connection that has sent nothing is spared when its place is needed. */
export const firstByteMs = 500

const state = Symbol('the requests on this connection')

/**
 * A connection with its requests. They are kept on the socket: a map would cost three look-ups for
 * each request.
 */
export type ClientSocket = Socket & { [state]?: Requests; readonly parser?: Parser | null }

/** Node's own parser of a connection. After a 2, it takes nothing more of the bytes that it has. */
interface Parser {
  onIncoming: () => 2
}

interface Requests {
  /** The response to the last request that was passed on. */
  current: ServerResponse | undefined
  /** Responses to the requests that wait for those before them. */
  waiting: ServerResponse[]
  isRefused: boolean
  /** When the last request came; before the first one, when the connection came. */
  lastAt: number
  /** How long it is kept while it is idle, as clients are told. */
  readonly idleSeconds: number
}

export interface RequestListeners {
  /** A request came, and those before it on its connection were answered. */
  onRequest(response: ServerResponse): void
  /** Too many requests wait on a connection: no more of them are taken. */
  onOverflow(socket: ClientSocket): void
}

/** Passes on the requests of each connection one at a time, in the order in which they came. */
export function buildConnections({ onRequest, onOverflow }: RequestListeners) {
  let waitingOnAll = 0

  // One at a time, so that a pipelined request sees the effects of the one before it, and a client
  // that does not read has one answer in memory, not many.
  function wait(socket: ClientSocket, requests: Requests, response: ServerResponse): void {
    if (requests.waiting.length === maxWaitingOnConnection || waitingOnAll === maxWaiting) {
      onOverflow(socket)
      // Node reads 64 KiB at once, in which thousands of requests could follow (README).
      if (socket.parser) socket.parser.onIncoming = () => 2
      return
    }
    requests.waiting.push(response)
    waitingOnAll++
    if (requests.waiting.length === 1) requests.current?.once('close', () => next(socket, requests))
    // While requests wait, no more are read: a client that sends without reading stalls, and is
    // dropped. Node resumes reading after each request, in a tick of its own; this comes after it.
    nextTick(nextTick, () => {
      if (requests.waiting.length > 0) socket.pause()
    })
  }

  function next(socket: ClientSocket, requests: Requests): void {
    const response = requests.waiting.shift() as ServerResponse
    waitingOnAll--
    if (!socket.writable) {
      waitingOnAll -= requests.waiting.length
      requests.waiting = []
      return
    }
    requests.current = response
    if (requests.waiting.length > 0) response.once('close', () => next(socket, requests))
    else socket.resume()
    onRequest(response)
  }

  return ({ socket }: IncomingMessage, response: ServerResponse): void => {
    const requests = requestsOf(socket)
    requests.lastAt = performance.now()
    if (lastOf(requests) === undefined) {
      requests.current = response
      onRequest(response)
    } else wait(socket, requests, response)
  }
}

/** Prepares a new connection. */
export function openConnection(socket: ClientSocket, keepAliveTimeoutMs: number): void {
  socket[state] = {
    current: undefined,
    waiting: [],
    isRefused: false,
    lastAt: performance.now(),
    idleSeconds: Math.floor(keepAliveTimeoutMs / 1000),
  }
  // Node would cut the connection after its last answer, and a client that is still sending would
  // lose that answer.
  socket.destroySoon = () => close(socket)
  // Node calls this when the client has ended its side, which still waits for its answers then.
  socket.end = () => {
    afterRequests(socket, () => close(socket))
    return socket
  }
}

const unlimited = new WeakSet<IncomingMessage>()

/** Takes Node's time limit off a request, which then needs another one. */
export function liftTimeLimit(request: IncomingMessage): void {
  unlimited.add(request)
}

/** Whether the request that is arriving has no time limit of Node's. */
export function hasNoTimeLimit(socket: ClientSocket): boolean {
  const { current } = requestsOf(socket)
  return isOpen(current) && !current.req.complete && unlimited.has(current.req)
}

function requestsOf(socket: ClientSocket): Requests {
  return socket[state] as Requests
}

export function idleSecondsOf(socket: ClientSocket): number {
  return requestsOf(socket).idleSeconds
}

/** The response to the last request of a connection; undefined if it was sent or broken off. */
function lastOf({ current, waiting }: Requests): ServerResponse | undefined {
  if (waiting.length > 0) return waiting.at(-1)
  return isOpen(current) ? current : undefined
}

function isOpen(response: ServerResponse | undefined): response is ServerResponse {
  return response !== undefined && !response.writableFinished && !response.destroyed
}

/** Calls `run` when every request on a connection has been answered, or at once if none is open. */
export function afterRequests(socket: ClientSocket, run: () => void): void {
  const last = lastOf(requestsOf(socket))
  if (last === undefined) run()
  else last.once('close', run)
}

/**
 * Closes the idle connection whose last request came longest ago, if there is one. Connections
 * that have never carried a request come first, unless it may still be on its way.
 */
export function closeIdlest(sockets: Iterable<ClientSocket>): boolean {
  const silentSince = performance.now() - firstByteMs
  let idlest: ClientSocket | undefined
  let leastAt = Infinity
  for (const socket of sockets) {
    const requests = requestsOf(socket)
    const isSilent = requests.current === undefined && requests.lastAt < silentSince
    const at = isSilent ? -Infinity : requests.lastAt
    if (at >= leastAt || socket.destroyed || lastOf(requests) !== undefined) continue
    idlest = socket
    leastAt = at
  }
  idlest?.destroy()
  return idlest !== undefined
}

/**
 * Answers malformed bytes and closes the connection. They are one of these:
 * - bytes after the last request: it is answered first;
 * - a part of a body that is being read: its request answers with the failure;
 * - a part of a body that nobody reads: this is the answer to its request, unless it has one.
 */
export function refuse(socket: ClientSocket, failure: Failure, toAnswer: () => string): void {
  const requests = requestsOf(socket)
  if (socket.destroyed || requests.isRefused) return
  requests.isRefused = true
  const last = lastOf(requests) ?? requests.current
  if (last !== undefined && isReadingBody(last)) {
    last.req.emit('error', failure)
    return
  }
  // Node removes its own listener for a CONNECT; without one, a reset would end the process.
  socket.on('error', () => socket.destroy())
  const send = () => {
    if (socket.writable) socket.write(toAnswer())
    close(socket)
  }
  if (last === undefined || last.req.complete) afterRequests(socket, send)
  // The answer to the request of this body is the last one, and may wait for those before it.
  else if (last.headersSent) afterRequests(socket, () => close(socket))
  // That request waits for the answers before it, and so does this one.
  else if (last.socket === null) last.once('socket', send)
  else send()
}

/** Whether a request waits for its body. Only then does it listen for errors. */
function isReadingBody({ headersSent, req }: ServerResponse): boolean {
  return !headersSent && !req.complete && req.listenerCount('error') > 0
}

/** Ends our side of a connection, and cuts it if the client does not end the other. */
export function close(socket: Socket): void {
  Reflect.apply(Socket.prototype.end, socket, [])
  const cut = setTimeout(() => socket.destroy(), lingerMs).unref()
  socket.once('close', () => clearTimeout(cut))
}

/**
 * Cuts a connection. To an HTTP/1.0 client, the end of the connection is the end of the answer. So
 * an incomplete answer ends with a reset, which cannot be mistaken for a complete one.
 */
export function breakOff(socket: ClientSocket): void {
  if (socket.destroyed) return
  const { current } = requestsOf(socket)
  const isIncomplete = isOpen(current) && current.headersSent
  if (isIncomplete && current.req.httpVersion === '1.0') socket.resetAndDestroy()
  else socket.destroy()
}
