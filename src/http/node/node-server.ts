import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Failure } from '../../contract/errors.ts'
import { limits, type Timeouts } from '../../contract/limits.ts'
import { collectBody } from './bodies.ts'
import {
  breakOff,
  buildConnections,
  type ClientSocket,
  closeIdlest,
  openConnection,
  refuse,
} from './client-socket.ts'
import { drain, type Grace } from './drain.ts'
import { createServer } from './node-http.ts'

export interface NodeServer {
  /** It does not listen yet. */
  readonly server: Server
  countConnections(): number
  /** Answers accepted requests, then closes. Returns how many connections had to be cut. */
  drain(grace: Grace): Promise<number>
}

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
  /** Whether a body with time limits of its own is being received. */
  hasLongBody(socket: Socket): boolean
  /** Called when a connection was closed because too many are open. */
  onDrop(): void
}

/** Builds Node's server. The README of this folder explains how it serves a connection. */
export function buildNodeServer(timeouts: Timeouts, handlers: ConnectionHandlers): NodeServer {
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
  const open = { sockets, lastClosedAt: -Infinity }
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
      open.lastClosedAt = performance.now()
    })
  })

  function refuseBytes(socket: ClientSocket, failure: Failure): void {
    const toAnswer = () => handlers.toRefusal(failure, socket)
    refuse(socket, failure, toAnswer, timeouts.stallTimeoutMs)
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
    // Node's time limit on a request does not apply to a long body.
    else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && handlers.hasLongBody(socket)) return
    else refuseBytes(socket, handlers.toFailure(error))
  })
  // A client that waits for its answer may be silent. One that is idle, or does not read, is cut.
  server.on('timeout', (socket: ClientSocket) => {
    if (socket.timeout !== server.timeout || socket.writableLength > 0) breakOff(socket)
  })
  return {
    server,
    countConnections: () => sockets.size,
    drain: (grace) => drain(server, open, timeouts, grace),
  }
}

/** The failure of the first pipelined request that finds too many before it. */
function tooManyWaiting(): Failure {
  return new Failure(
    50300,
    'Too many requests wait on this connection. This one and those after it were not done: send them again.',
    { reason: 'waiting_on_connection' },
  )
}
