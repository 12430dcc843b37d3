import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { nextTick } from 'node:process'

/** How many requests may wait for the one before them: on one connection, and on all of them. */
export const maxWaitingOnConnection = 1_000
export const maxWaiting = 8_000
/** One in this many pipelined requests is postponed, so that other connections get a turn. */
const pipelinedPerTurn = 4
/** How many postponed requests begin before other connections are read. */
const maxPostponedPerTurn = 16
/** How long a closing connection lingers, so that its client can read the last answer. */
const lingerMs = 500

const queue = Symbol('the requests on this connection')

/**
 * A connection with its requests. They are kept on the socket: a map would cost three look-ups for
 * each request.
 */
export type ClientSocket = Socket & {
  [queue]?: RequestQueue
  /** Node's own. It calls `onIncoming` for each request that it has parsed. */
  parser?: { onIncoming: () => number } | null
}

interface RequestQueue {
  /** The response to the last request that had its turn. */
  current: ServerResponse | undefined
  /** Responses to the requests that wait for their turn. */
  waiting: ServerResponse[]
  isPauseScheduled: boolean
  isRefused: boolean
  /** How many requests have waited so far. */
  pipelined: number
}

type Turn = (request: IncomingMessage, response: ServerResponse) => void

/**
 * Gives each request its turn, when every request before it on its connection was answered.
 * `onOverflow` is called for a connection on which too many wait: no more of its requests are seen.
 */
export function buildTurns(onTurn: Turn, onOverflow: (socket: ClientSocket) => void) {
  let waitingOnAll = 0
  let received: ServerResponse[] = []
  const postponed: ServerResponse[] = []

  function receive(request: IncomingMessage, response: ServerResponse): void {
    const socket: ClientSocket = request.socket
    const requests = queueOf(socket)
    if (lastOf(requests) === undefined) {
      requests.current = response
      if (request.method === 'GET') beginSoon(response)
      else begin(socket, response)
    } else wait(socket, requests, response)
  }

  // Reads begin when every connection that has bytes has been read. To parse many requests and
  // then answer many takes a sixth less CPU than to do both for each. A write has a body, which
  // Node passes on right after the request, and its answer comes with those of its batch.
  function beginSoon(response: ServerResponse): void {
    if (received.push(response) === 1) setImmediate(beginReceived)
  }

  function beginReceived(): void {
    const responses = received
    received = []
    for (const response of responses) begin(response.req.socket, response)
  }

  function postpone(response: ServerResponse): void {
    if (postponed.push(response) === 1) setImmediate(beginPostponed)
  }

  // A few at a time: a thousand connections that pipeline would hold up the others for seconds.
  function beginPostponed(): void {
    const responses = postponed.splice(0, maxPostponedPerTurn)
    if (postponed.length > 0) setImmediate(beginPostponed)
    for (const response of responses) begin(response.req.socket, response)
  }

  // A pipelined request sees the effects of the one before it. For a client that does not read,
  // one answer is held in memory, not many.
  function wait(socket: ClientSocket, requests: RequestQueue, response: ServerResponse): void {
    if (requests.waiting.length === maxWaitingOnConnection || waitingOnAll === maxWaiting) {
      // As after an upgrade, Node parses no more of the bytes that it has. Each request that waits
      // holds about 2 KB.
      if (socket.parser) socket.parser.onIncoming = () => 2
      onOverflow(socket)
      return
    }
    requests.waiting.push(response)
    waitingOnAll++
    if (requests.waiting.length === 1) requests.current?.once('close', () => next(socket, requests))
    schedulePause(socket, requests)
  }

  // A request after a closing answer is not executed: it could not be answered (RFC 9112, 9.6).
  function begin(socket: ClientSocket, response: ServerResponse): void {
    if (socket.writable) onTurn(response.req, response)
  }

  function next(socket: ClientSocket, requests: RequestQueue): void {
    const response = requests.waiting.shift() as ServerResponse
    waitingOnAll--
    if (!socket.writable) {
      waitingOnAll -= requests.waiting.length
      requests.waiting = []
      return
    }
    requests.current = response
    if (requests.waiting.length > 0) response.once('close', () => next(socket, requests))
    // While an upgrade is pending there is no parser, and bytes that are read would be lost.
    else if (socket.parser) socket.resume()
    // Other connections get their turn in between, however fast this one is answered.
    if (++requests.pipelined % pipelinedPerTurn === 0) postpone(response)
    else begin(socket, response)
  }

  // While requests wait, no more are read: a client that sends without reading stalls, and is
  // dropped. Node resumes reading after each request, in a tick of its own; this comes after it.
  function schedulePause(socket: Socket, requests: RequestQueue): void {
    if (requests.isPauseScheduled) return
    requests.isPauseScheduled = true
    nextTick(nextTick, () => {
      requests.isPauseScheduled = false
      if (requests.waiting.length > 0) socket.pause()
    })
  }

  return { receive }
}

function queueOf(socket: ClientSocket): RequestQueue {
  socket[queue] ??= {
    current: undefined,
    waiting: [],
    isPauseScheduled: false,
    isRefused: false,
    pipelined: 0,
  }
  return socket[queue]
}

/** The response to the last request of a connection; undefined if it was sent or broken off. */
function lastOf({ current, waiting }: RequestQueue): ServerResponse | undefined {
  if (waiting.length > 0) return waiting.at(-1)
  return isOpen(current) ? current : undefined
}

function isOpen(response: ServerResponse | undefined): response is ServerResponse {
  return response !== undefined && !response.writableFinished && !response.destroyed
}

/** The response that is being made on a connection, if there is one. */
export function findOpenResponse(socket: ClientSocket): ServerResponse | undefined {
  const { current } = queueOf(socket)
  return isOpen(current) ? current : undefined
}

/** Calls `run` when every request on a connection has been answered, or at once if none is open. */
export function afterRequests(socket: ClientSocket, run: () => void): void {
  const last = lastOf(queueOf(socket))
  if (last === undefined) run()
  else last.once('close', run)
}

/**
 * Answers broken bytes and closes the connection. They came after the last request, which is
 * answered first, or in its body: then this is its answer, unless it has one.
 */
export function refuse(socket: ClientSocket, timeoutMs: number, answer: string): void {
  const requests = queueOf(socket)
  if (socket.destroyed || requests.isRefused) return
  requests.isRefused = true
  // Node removes its own listener for a CONNECT; without one, a reset would end the process.
  socket.on('error', () => socket.destroy())
  setTimeout(() => socket.destroy(), timeoutMs).unref()
  const send = () => {
    if (socket.writable) socket.write(answer)
    close(socket)
  }
  const last = lastOf(requests) ?? requests.current
  if (last === undefined || last.req.complete) afterRequests(socket, send)
  // It has its answer, which may have to wait for those before it.
  else if (last.headersSent) afterRequests(socket, () => close(socket))
  else if (last.socket === null) last.once('socket', send)
  else send()
}

/** Ends a connection, and cuts it if its client does not end it as well. */
export function close(socket: Socket): void {
  socket.end()
  setTimeout(() => socket.destroy(), lingerMs).unref()
}
