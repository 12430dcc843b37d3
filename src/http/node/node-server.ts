import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Failure } from '../../contract/errors.ts'
import { limits, type Timeouts } from '../../contract/limits.ts'
import { type ClientError, toClientFailure, tooManyWaiting } from './client-errors.ts'
import { drain, type Grace } from './drain.ts'
import { answerHalfClosed } from './half-closed.ts'
import { receiveBody } from './incoming-body.ts'
import { breakLongBody, hasLongBody } from './long-body.ts'
import { createServer } from './node-http.ts'
import { trackConnections } from './port.ts'
import { dropSilent } from './silence.ts'
import { afterRequests, buildTurns, type ClientSocket, close, refuse } from './turns.ts'
import { ignoreUpgrades, isIdleAgain, postponeUpgrade } from './upgrades.ts'

export interface NodeServer {
  /** It does not listen yet. */
  readonly server: Server
  countConnections(): number
  /** Answers accepted requests, then closes. Returns how many connections had to be cut. */
  drain(grace: Grace): Promise<number>
}

export interface ConnectionHandlers {
  /** Answers a request. Those before it on its connection have been answered. */
  onRequest(request: IncomingMessage, response: ServerResponse): void
  /** Makes the raw answer to bytes that are no whole request. The connection then closes. */
  toRefusal(failure: Failure, socket: ClientSocket): string
  /** Called for a connection beyond the bound, which was closed. */
  onDrop(): void
}

/**
 * Builds Node's server. This folder is all that relies on how Node handles connections: reread it
 * with each release of Node.
 */
export function buildNodeServer(timeouts: Timeouts, handlers: ConnectionHandlers): NodeServer {
  const server = createServer({
    requestTimeout: timeouts.requestTimeoutMs,
    headersTimeout: timeouts.headersTimeoutMs,
    connectionsCheckingInterval: Math.min(1_000, timeouts.headersTimeoutMs / 2),
    maxHeaderSize: limits.headerBytes,
    // Node would answer a request without Host itself, and drop repeated headers.
    requireHostHeader: false,
    joinDuplicateHeaders: true,
    // A request without a body needs no stream for it.
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: postponeUpgrade,
  })
  server.maxConnections = limits.connections
  const connections = trackConnections(server)
  const silence = dropSilent(server, timeouts)

  function refuseBytes(socket: ClientSocket, failure: Failure): void {
    refuse(socket, timeouts.stallTimeoutMs, handlers.toRefusal(failure, socket))
  }

  /** A long body has a receiver, which answers itself: it says what was done before. */
  function refuseRequest(socket: ClientSocket, failure: Failure): void {
    if (breakLongBody(socket, failure)) afterRequests(socket, () => close(socket))
    else refuseBytes(socket, failure)
  }

  const turns = buildTurns(handlers.onRequest, (socket) => refuseBytes(socket, tooManyWaiting()))
  const receive = (request: IncomingMessage, response: ServerResponse) => {
    silence.end(request.socket, response)
    receiveBody(request)
    turns.receive(request, response)
  }
  server.on('request', receive)
  // Node would answer these two itself, without a body.
  server.on('checkContinue', receive)
  server.on('checkExpectation', receive)
  ignoreUpgrades(server)
  answerHalfClosed(server)
  server.on('connect', (_, socket: ClientSocket) =>
    refuseBytes(
      socket,
      new Failure(40000, 'The method CONNECT is for proxies, and this is not one.'),
    ),
  )
  server.on('clientError', (error: ClientError, socket: ClientSocket) => {
    if (error.code === 'ECONNRESET') socket.destroy()
    else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && isExempt(socket)) return
    else refuseRequest(socket, toClientFailure(error, timeouts))
  })
  server.on('drop', handlers.onDrop)
  return {
    server,
    countConnections: connections.count,
    drain: (grace) => drain(server, connections, timeouts, grace),
  }
}

/** Whether Node's limit on the time of a request does not hold for what a connection is doing. */
function isExempt(socket: ClientSocket): boolean {
  return isIdleAgain(socket) || hasLongBody(socket)
}
