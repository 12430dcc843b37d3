import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Failure } from '../../contract/errors.ts'
import { limits, type Timeouts } from '../../contract/limits.ts'
import { malformed } from '../failures.ts'
import { type ClientError, toClientFailure, tooManyWaiting } from './client-errors.ts'
import { drain, type Grace } from './drain.ts'
import { answerHalfClosed } from './half-closed.ts'
import { breakLongBody, hasLongBody } from './long-body.ts'
import { createServer } from './node-http.ts'
import { trackConnections } from './port.ts'
import { dropSilent } from './silence.ts'
import { afterRequests, buildTurns, close, refuse, type TrackedSocket } from './turns.ts'
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
  /** Makes the answer, as bytes, to something that is no request. The connection then closes. */
  toRefusal(failure: Failure, socket: TrackedSocket): string
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
    // Node would answer the first of these itself, and repair the second.
    requireHostHeader: false,
    joinDuplicateHeaders: true,
    // A request without a body needs no stream for it.
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: postponeUpgrade,
  })
  server.maxConnections = limits.connections
  const connections = trackConnections(server)
  const silence = dropSilent(server, timeouts)

  function refuseBytes(socket: TrackedSocket, failure: Failure): void {
    refuse(socket, timeouts.stallTimeoutMs, handlers.toRefusal(failure, socket))
  }

  /** The receiver of a long body answers itself, with what it has done. */
  function refuseRequest(socket: TrackedSocket, failure: Failure): void {
    if (breakLongBody(socket, failure)) afterRequests(socket, () => close(socket))
    else refuseBytes(socket, failure)
  }

  const turns = buildTurns(handlers.onRequest, (socket) => refuseBytes(socket, tooManyWaiting()))
  const receive = (request: IncomingMessage, response: ServerResponse) => {
    silence.end(request.socket, response)
    turns.receive(request, response)
  }
  server.on('request', receive)
  // Node would answer these two itself, without a body.
  server.on('checkContinue', receive)
  server.on('checkExpectation', receive)
  ignoreUpgrades(server)
  answerHalfClosed(server)
  server.on('connect', (_, socket: TrackedSocket) =>
    refuseBytes(socket, malformed('The method CONNECT is for proxies, and this is not one.')),
  )
  server.on('clientError', (error: ClientError, socket: TrackedSocket) => {
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
function isExempt(socket: TrackedSocket): boolean {
  return isIdleAgain(socket) || hasLongBody(socket)
}
