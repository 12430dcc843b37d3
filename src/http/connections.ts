import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { nextTick } from 'node:process'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'

/**
 * How Node handles connections: pipelined requests, reading and pausing, broken bytes, a port that
 * closes. This file and `upgrades.ts` rely on Node's insides: reread them with each release.
 */

/** How many requests may wait for the one before them: on one connection, and on all of them. */
export const maxWaitingOnConnection = 1_000
export const maxWaiting = 8_000
/** How long a closing connection lingers, so that its client can read the last answer. */
const lingerMs = 500
const queue = Symbol('the requests on this connection')
/** The queue is kept on the socket: a map would cost three look-ups for each request. */
export type TrackedSocket = Socket & {
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
}

type Turn = (request: IncomingMessage, response: ServerResponse) => void

/**
 * Gives each request its turn, when every request before it on its connection was answered.
 * `onOverflow` is called for a connection on which too many wait: no more of its requests are seen.
 */
export function buildTurns(onTurn: Turn, onOverflow: (socket: TrackedSocket) => void) {
  let waitingOnAll = 0

  function receive(request: IncomingMessage, response: ServerResponse): void {
    const socket: TrackedSocket = request.socket
    const requests = queueOf(socket)
    if (lastOf(requests) === undefined) {
      requests.current = response
      // A request after a closing answer is not executed: it could not be answered (RFC 9112, 9.6).
      if (socket.writable) onTurn(request, response)
    } else wait(socket, requests, response)
  }

  // A pipelined request sees the effects of the one before it. For a client that does not read,
  // one answer is held in memory, not many.
  function wait(socket: TrackedSocket, requests: RequestQueue, response: ServerResponse): void {
    if (requests.waiting.length === maxWaitingOnConnection || waitingOnAll === maxWaiting) {
      // Node keeps parsing. Requests that are discarded here are garbage at once, while each
      // request that waits holds about 2 KB.
      if (socket.parser) socket.parser.onIncoming = () => 0
      onOverflow(socket)
      return
    }
    requests.waiting.push(response)
    waitingOnAll++
    if (requests.waiting.length === 1) requests.current?.once('close', () => next(socket, requests))
    schedulePause(socket, requests)
  }

  function next(socket: TrackedSocket, requests: RequestQueue): void {
    const response = requests.waiting.shift() as ServerResponse
    waitingOnAll--
    if (!socket.writable) {
      waitingOnAll -= requests.waiting.length
      requests.waiting = []
      return
    }
    requests.current = response
    if (requests.waiting.length > 0) response.once('close', () => next(socket, requests))
    else if (socket.parser) socket.resume()
    onTurn(response.req, response)
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

function queueOf(socket: TrackedSocket): RequestQueue {
  socket[queue] ??= { current: undefined, waiting: [], isPauseScheduled: false, isRefused: false }
  return socket[queue]
}

/** The response to the last request of a connection; undefined if it was sent or broken off. */
function lastOf({ current, waiting }: RequestQueue): ServerResponse | undefined {
  if (waiting.length > 0) return waiting.at(-1)
  return current?.writableFinished || current?.destroyed ? undefined : current
}

/** Calls `run` when every request on a connection has been answered, or at once if none is open. */
export function afterRequests(socket: TrackedSocket, run: () => void): void {
  const last = lastOf(queueOf(socket))
  if (last === undefined) run()
  else last.once('close', run)
}

/** Answers bytes that are no request, or break the body of one, and closes the connection. */
export function refuse(socket: TrackedSocket, timeoutMs: number, toAnswer: () => string): void {
  const requests = queueOf(socket)
  if (socket.destroyed || requests.isRefused) return
  requests.isRefused = true
  // Node removes its own listener for a CONNECT; without one, a reset would end the process.
  socket.on('error', () => socket.destroy())
  setTimeout(() => socket.destroy(), timeoutMs).unref()
  const send = () => {
    if (socket.writable) socket.write(toAnswer())
    close(socket)
  }
  const last = lastOf(requests) ?? requests.current
  // The broken bytes follow a whole request, which gets its answer first.
  if (last === undefined || last.req.complete) afterRequests(socket, send)
  // It has its answer, which may have to wait for those before it.
  else if (last.headersSent) afterRequests(socket, () => close(socket))
  else if (last.socket === null) last.once('socket', send)
  else send()
}

export function close(socket: Socket): void {
  socket.end()
  setTimeout(() => socket.destroy(), lingerMs).unref()
}

/** How long a new connection may be silent before it counts as idle. Node allows no time at all. */
const firstByteMs = 500
/** The port closes after this many checks in a row without a new connection. */
const quietLooks = 3
const lookMs = 10
/** How long a stream of new connections may keep the port open. */
const maxClosingMs = 500

/** Follows the connections of a server, so that it can shut down without losing a request. */
export function trackConnections(server: Server) {
  const openedAt = new Map<Socket, number>()
  server.on('connection', (socket) => {
    if (openedAt.has(socket)) return
    openedAt.set(socket, performance.now())
    socket.once('close', () => openedAt.delete(socket))
  })
  const findSilent = () => [...openedAt].filter(([socket]) => socket.bytesRead === 0)

  /**
   * Closes the port and idle connections. The system would reset connections that wait to be
   * accepted, so they are accepted first, one with each turn of the event loop, and served after
   * the port is closed. Resolves when the port is closed; `closed` when every connection is.
   */
  async function closePort(): Promise<{ closed: Promise<void> }> {
    const accepted: Socket[] = []
    const listeners = server.rawListeners('connection') as ((socket: Socket) => void)[]
    server.removeAllListeners('connection')
    server.on('connection', (socket) => {
      // An old connection comes again after a request for an upgrade.
      if (openedAt.has(socket)) for (const listener of listeners) listener.call(server, socket)
      else accepted.push(socket)
      // Node does not listen yet, and a reset would end the process.
      socket.on('error', () => socket.destroy())
    })
    const startedAt = performance.now()
    const mayBeFirstByte = ([, since]: [Socket, number]) => performance.now() - since < firstByteMs
    for (let quiet = 0; quiet < quietLooks; quiet++) {
      const before = accepted.length
      await sleep(lookMs)
      // One more turn after a commit, during which nothing is accepted or read.
      await turn()
      if (performance.now() - startedAt > maxClosingMs) break
      if (accepted.length > before || findSilent().some(mayBeFirstByte)) quiet = -1
    }
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    server.removeAllListeners('connection')
    for (const listener of listeners) server.on('connection', listener)
    for (const socket of accepted) if (!socket.destroyed) server.emit('connection', socket)
    void sleep(firstByteMs, undefined, { ref: false }).then(() => cut(findSilent()))
    return { closed }
  }

  /** Cuts connections, all of them unless told which, and returns how many. */
  function cut(connections: readonly [Socket, number][] = [...openedAt]): number {
    const open = connections.filter(([socket]) => !socket.destroyed)
    for (const [socket] of open) socket.destroy()
    return open.length
  }

  return { closePort, cut, count: () => openedAt.size }
}
