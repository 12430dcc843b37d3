import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../../contract/errors.ts'
import { limits, type Timeouts } from '../../contract/limits.ts'
import { collectBody } from './bodies.ts'
import {
  breakOff,
  buildConnections,
  type ClientSocket,
  closeIdlest,
  firstByteMs,
  hasNoTimeLimit,
  openConnection,
  refuse,
} from './client-socket.ts'
import { createServer } from './node-http.ts'

/** An error of Node's HTTP parser. */
export interface ClientError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer
}

export interface ConnectionHandlers {
  readonly maxConnections: number
  onConnection(): void
  /** Answers a request. Those before it on its connection have been answered. */
  onRequest(response: ServerResponse): void
  /** The failure with which an error of Node's parser is answered. */
  toFailure(error: ClientError): Failure
  /** Makes the raw answer to bytes that are not a complete request. The connection then closes. */
  toRefusal(failure: Failure, socket: ClientSocket): string
  /** Called when a connection was closed because too many are open. */
  onDrop(): void
}

/**
 * Builds Node's server, which does not listen yet. The README of this folder explains how it serves
 * a connection.
 */
export function buildNodeServer(timeouts: Timeouts, handlers: ConnectionHandlers) {
  const server = createServer({
    requestTimeout: timeouts.requestTimeoutMs,
    headersTimeout: timeouts.headersTimeoutMs,
    keepAliveTimeout: timeouts.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(1_000, timeouts.headersTimeoutMs / 2),
    maxHeaderSize: limits.headerBytes,
    // Node would answer a request without Host itself, and drop repeated headers.
    requireHostHeader: false,
    joinDuplicateHeaders: true,
    // A request without a body needs no stream for it.
    optimizeEmptyRequests: true,
  })
  server.maxHeadersCount = limits.headerFields
  server.timeout = timeouts.stallTimeoutMs
  const sockets = new Set<Socket>()
  /** The open connections, and when the last one was closed, by `performance.now()`. */
  const connections = { sockets, lastClosedAt: -Infinity }
  server.on('connection', (socket) => {
    openConnection(socket, timeouts.keepAliveTimeoutMs)
    // A new client takes the place of the one that has been idle longest.
    if (sockets.size >= handlers.maxConnections && !closeIdlest(sockets)) {
      handlers.onDrop()
      socket.destroy()
      return
    }
    sockets.add(socket)
    handlers.onConnection()
    socket.once('close', () => {
      sockets.delete(socket)
      connections.lastClosedAt = performance.now()
    })
  })

  function refuseBytes(socket: ClientSocket, failure: Failure): void {
    refuse(socket, failure, () => handlers.toRefusal(failure, socket))
  }

  const passOn = buildConnections({
    onRequest: handlers.onRequest,
    onOverflow: (socket) => refuseBytes(socket, tooManyWaiting()),
  })
  // Node would answer the last two itself, without a body.
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    server.on(event, collectBody)
    server.on(event, passOn)
  }
  server.on('connect', (_, socket: ClientSocket) =>
    refuseBytes(
      socket,
      new Failure(40000, 'The method CONNECT is for proxies, and this is not one.'),
    ),
  )
  server.on('clientError', (error: ClientError, socket: ClientSocket) => {
    if (error.code === 'ECONNRESET') socket.destroy()
    else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && hasNoTimeLimit(socket)) return
    else refuseBytes(socket, handlers.toFailure(error))
  })
  // Node emits this for the limit on idle connections, and for that on connections on which nothing
  // moves: the second cuts clients that do not read, while others may wait in silence.
  server.on('timeout', (socket: ClientSocket) => {
    const isIdle = socket.timeout !== server.timeout
    if (isIdle || socket.writableLength > 0) breakOff(socket)
  })
  return {
    server,
    countConnections: () => sockets.size,
    drain: (grace: Grace) => drain(server, connections, timeouts, grace),
  }
}

/** The failure of the first pipelined request that finds too many before it. */
function tooManyWaiting(): Failure {
  return new Failure(
    50300,
    'Too many requests wait on this connection. This one and the ones after it were not executed: send them again.',
    { reason: 'waiting_on_connection' },
  )
}

/**
 * When the grace ends before its time: 'short' as soon as no client is connected, 'full' only if
 * none has been for as long as it lasts.
 */
export type Grace = 'full' | 'short'

/**
 * Ends a server without losing a request that it has accepted. While it drains, `/readyz` fails and
 * each connection is closed after its next answer. During the grace it keeps serving, so that
 * clients notice and go elsewhere. Then the port and idle connections are closed, and connections
 * that are still open at the deadline are cut. Returns how many were cut.
 */
async function drain(
  server: Server,
  connections: { readonly sockets: ReadonlySet<Socket>; readonly lastClosedAt: number },
  timeouts: Timeouts,
  grace: Grace,
): Promise<number> {
  const { sockets } = connections
  const ended = new AbortController()
  // Its timer keeps the process alive: connections that are not read from would not.
  const deadline = sleep(timeouts.shutdownMs, undefined, { signal: ended.signal }).catch(() => {})
  // An answer that began earlier did not announce the close, so its client may send another
  // request. It has the grace for that.
  server.keepAliveTimeout = Math.max(1, timeouts.idleGraceMs)
  server.keepAliveTimeoutBuffer = 0
  const graceEndsAt = performance.now() + timeouts.idleGraceMs
  const quietMs = grace === 'short' ? 0 : timeouts.idleGraceMs
  while (performance.now() < graceEndsAt) {
    if (sockets.size === 0 && performance.now() - connections.lastClosedAt >= quietMs) break
    await sleep(10)
  }
  const closed = new Promise<void>((resolve) => closeServer(server, sockets, resolve))
  const dropSilent = () => {
    for (const socket of findSilent(sockets)) socket.destroy()
  }
  setTimeout(dropSilent, firstByteMs).unref()
  await Promise.race([closed, deadline])
  ended.abort()
  const cut = [...sockets].filter((socket) => !socket.destroyed)
  for (const socket of cut) breakOff(socket)
  await closed
  return cut.length
}

/** Closes the port and idle connections. Those that have sent nothing yet stay open. */
function closeServer(server: Server, sockets: ReadonlySet<Socket>, onClosed: () => void): void {
  const silent = findSilent(sockets)
  // Node.js 26 takes them for idle ones and destroys them, though a request may be on its way.
  for (const socket of silent) socket.destroy = () => socket
  server.close(onClosed)
  for (const socket of silent) Reflect.deleteProperty(socket, 'destroy')
}

function findSilent(sockets: ReadonlySet<Socket>): Socket[] {
  return [...sockets].filter(({ bytesRead }) => bytesRead === 0)
}
