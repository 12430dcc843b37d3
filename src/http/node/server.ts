import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Failure } from '../../contract/errors.ts'
import { limits, type Timeouts } from '../../contract/limits.ts'
import {
  answerHalfClosed,
  breakOff,
  buildConnections,
  type ClientSocket,
  close,
  closeIdlest,
  noteConnection,
  refuse,
} from './connection.ts'
import { countFreeDescriptors } from './descriptors.ts'
import { drain, type Grace } from './drain.ts'
import { buildGate, type GateRules } from './gate.ts'
import { buildPace, collectBody } from './incoming-body.ts'
import { createServer } from './node-http.ts'
import { buildAnswers } from './sending.ts'

export interface NodeServer {
  /** It does not listen yet. */
  readonly server: Server
  countConnections(): number
  /** Answers accepted requests, then closes. Returns how many connections had to be cut. */
  drain(grace: Grace): Promise<number>
}

export interface ConnectionHandlers extends GateRules {
  /**
   * Answers a request. Those before it on its connection have been answered. `leave` is called once
   * the answer is made; a late request has waited for too long.
   */
  onRequest(response: ServerResponse, leave: () => void, isLate: boolean): void
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
  const maxConnections = Math.min(limits.connections, countFreeDescriptors())
  const sockets = new Set<Socket>()
  const open = { sockets, lastClosedAt: -Infinity }
  const shareAnswers = buildAnswers(timeouts.keepAliveTimeoutMs)
  const sharePace = buildPace()
  server.on('connection', (socket) => {
    // A new client takes the place of the one that has been idle longest.
    if (sockets.size >= maxConnections && !closeIdlest(sockets)) {
      handlers.onDrop()
      socket.destroy()
      return
    }
    sockets.add(socket)
    noteConnection(socket)
    shareAnswers(socket)
    sharePace(socket)
    // Node would cut the connection after its last answer, and a client that is still sending would
    // lose that answer.
    socket.destroySoon = () => close(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      open.lastClosedAt = performance.now()
    })
  })

  function refuseBytes(socket: ClientSocket, failure: Failure): void {
    const toAnswer = () => handlers.toRefusal(failure, socket)
    refuse(socket, failure, toAnswer, timeouts.stallTimeoutMs)
  }

  // A request after a closing answer is not executed: it could not be answered (RFC 9112, 9.6).
  const addToGate = buildGate(server, handlers, (response, leave, isLate) => {
    if (response.req.socket.writable) handlers.onRequest(response, leave, isLate)
    else leave()
  })
  const passOn = buildConnections({
    onRequest: addToGate,
    onOverflow: (socket) => refuseBytes(socket, tooManyWaiting()),
  })
  const receive = (request: IncomingMessage, response: ServerResponse) => {
    collectBody(request)
    passOn(request, response)
  }
  server.on('request', receive)
  // Node would answer these two itself, without a body.
  server.on('checkContinue', receive)
  server.on('checkExpectation', receive)
  answerHalfClosed(server)
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
    else refuseBytes(socket, toClientFailure(error, timeouts))
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

/** An error of Node's HTTP parser. */
interface ClientError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer
}

/** Node parses nothing after an error. */
const lastAnswer = { headers: { Connection: 'close' } }

/** The failure with which an error of Node's parser is answered. */
function toClientFailure(error: ClientError, timeouts: Timeouts): Failure {
  const { code = '' } = error
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    const seconds = [timeouts.headersTimeoutMs, timeouts.requestTimeoutMs].map((ms) => ms / 1000)
    return new Failure(
      40800,
      `The headers must be complete within ${seconds[0]} s, the whole request within ${seconds[1]} s.`,
      lastAnswer,
    )
  }
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new Failure(
      43100,
      `The headers must have at most ${limits.headerBytes} bytes and ${limits.headerFields} fields.`,
      lastAnswer,
    )
  }
  if (code === 'HPE_INVALID_VERSION' && !hasKnownVersion(error.rawPacket)) {
    return new Failure(50500, 'The request must be HTTP/1.1 or HTTP/1.0.', lastAnswer)
  }
  if (code === 'HPE_INVALID_EOF_STATE') {
    return new Failure(40000, 'The connection ended before the request did.', lastAnswer)
  }
  return new Failure(40000, 'The request is not well-formed HTTP.', lastAnswer)
}

/** Node also complains about a valid version when no line break follows it. */
function hasKnownVersion(packet: Buffer | undefined): boolean {
  return / HTTP\/1\.[01][^\d\r]/.test(packet?.toString('latin1') ?? '')
}

/** The failure of the first pipelined request that finds too many before it. */
function tooManyWaiting(): Failure {
  return new Failure(
    50300,
    'Too many requests wait on this connection. This one and those after it were not done: send them again.',
    { reason: 'waiting_on_connection' },
  )
}
