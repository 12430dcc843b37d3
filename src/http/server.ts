import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { Failure } from '../contract/errors.ts'
import { contentTypeOptions } from '../contract/headers.ts'
import { limits, type Timeouts } from '../contract/limits.ts'
import { overloaded } from '../store/failures.ts'
import type { Store } from '../store/store.ts'
import type { TokenVerifier } from '../tokens/verify.ts'
import { type ClientError, toClientFailure, toRawAnswer } from './client-errors.ts'
import { buildTurns, refuse, type TrackedSocket } from './connections.ts'
import { type AllowedOrigins, allowOrigin } from './cors.ts'
import { addField, type Exchange } from './exchange.ts'
import { malformed, sendFailure, toFailure } from './failures.ts'
import { buildHandlers } from './handlers.ts'
import { drain, type Grace } from './lifecycle.ts'
import { buildOperations } from './operations.ts'
import { buildPages } from './pages.ts'
import { trackConnections } from './port.ts'
import { findProtocolFault, isFramedOddly, toOriginForm } from './protocol.ts'
import type { RateLimit } from './rate-limit.ts'
import { buildRequestLog } from './request-log.ts'
import { buildRoutes, type FoundRoute, toPath } from './routes.ts'
import { answerUnrouted } from './unrouted.ts'
import { ignoreUpgrades, isIdleAgain, postponeUpgrade } from './upgrades.ts'
import { buildWriteHealth } from './write-health.ts'

export interface ServerParts {
  readonly store: Store
  readonly tokens: TokenVerifier
  readonly logger: Logger
  readonly publicUrl: string | undefined
  readonly allowedOrigins: AllowedOrigins
  readonly rateLimit: RateLimit | undefined
  readonly trustedProxies: number
  readonly timeouts: Timeouts
}

export interface HttpServer {
  /** It does not listen yet. */
  readonly server: Server
  /** Answers accepted requests, then closes. Returns how many connections had to be cut. */
  drain(grace: Grace): Promise<number>
}

/** Builds the HTTP side of the service. */
export function buildServer(parts: ServerParts): HttpServer {
  const { store, tokens, publicUrl, allowedOrigins, rateLimit, timeouts } = parts
  const lifecycle = { isDraining: false }
  const writeHealth = buildWriteHealth()
  const newRequestId = buildRequestIds()
  const log = buildRequestLog(parts)
  const findRoute = buildRoutes([
    ...buildOperations({
      handlers: buildHandlers(store),
      tokens,
      rateLimit,
      publicUrl,
      timeouts,
      writeHealth,
    }),
    ...buildPages({ store, lifecycle, writeHealth, publicUrl }),
  ])
  const server = createServer({
    requestTimeout: timeouts.requestTimeoutMs,
    headersTimeout: timeouts.headersTimeoutMs,
    connectionsCheckingInterval: Math.min(1_000, timeouts.headersTimeoutMs / 2),
    keepAliveTimeout: timeouts.keepAliveTimeoutMs,
    maxHeaderSize: limits.headerBytes,
    // Node would answer the first of these itself, and repair the second.
    requireHostHeader: false,
    joinDuplicateHeaders: true,
    // A request without a body needs no stream for it.
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: postponeUpgrade,
  })
  server.timeout = timeouts.stallTimeoutMs
  server.maxConnections = limits.connections
  const connections = trackConnections(server)

  /** Answers a request. Those before it on its connection have been answered. */
  function begin(request: IncomingMessage, response: ServerResponse): void {
    const exchange = toExchange(request, response)
    const path = toPath(exchange.url)
    const found = path === undefined ? undefined : findRoute(path)
    log.begin(exchange, found)
    const fault = findProtocolFault(exchange) ?? findEscapeFault(exchange.url, path)
    if (fault !== undefined) sendFailure(exchange, fault)
    else if (store.isFull() && !found?.route.isPage) sendFailure(exchange, overloaded())
    else answer(exchange, found)
  }

  function toExchange(request: IncomingMessage, response: ServerResponse): Exchange {
    const id = newRequestId()
    const url = toOriginForm(request.url ?? '')
    const exchange: Exchange = {
      id,
      request,
      response,
      url,
      fields: ['X-Request-Id', id, 'X-Content-Type-Options', contentTypeOptions],
      tokenId: undefined,
      error: undefined,
    }
    // Every answer carries these, whatever becomes of the request.
    if (lifecycle.isDraining || isFramedOddly(request)) addField(exchange, 'Connection', 'close')
    allowOrigin(exchange, allowedOrigins)
    return exchange
  }

  function answer(exchange: Exchange, found: FoundRoute | undefined): void {
    const handle = found?.route.handles.get(exchange.request.method ?? '')
    if (found === undefined || handle === undefined) answerUnrouted(exchange, found?.route.allow)
    else handle(exchange, found.id).catch((error: unknown) => fail(exchange, error))
  }

  function fail(exchange: Exchange, error: unknown): void {
    const failure = toFailure(error)
    if (failure.number === 50700) writeHealth.noteDiskFull()
    log.fail(exchange, failure)
    // Half an answer cannot be taken back. All that its client can see is that it breaks off.
    if (exchange.response.headersSent) exchange.response.destroy()
    else sendFailure(exchange, failure)
  }

  function refuseBytes(socket: TrackedSocket, failure: Failure): void {
    const id = newRequestId()
    log.refuse(id, socket, failure)
    refuse(socket, timeouts.stallTimeoutMs, () => toRawAnswer(failure, id))
  }

  const { receive } = buildTurns(begin, (socket) => refuseBytes(socket, tooManyWaiting()))
  server.on('request', receive)
  // Node would answer these two itself, without a body.
  server.on('checkContinue', receive)
  server.on('checkExpectation', receive)
  ignoreUpgrades(server)
  server.on('connect', (_, socket: TrackedSocket) =>
    refuseBytes(socket, malformed('The method CONNECT is for proxies, and this is not one.')),
  )
  server.on('clientError', (error: ClientError, socket: TrackedSocket) => {
    if (error.code === 'ECONNRESET') socket.destroy()
    else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && isIdleAgain(socket)) return
    else refuseBytes(socket, toClientFailure(error, timeouts))
  })
  // Drops clients that stop reading and connections that stay idle. Node's other timers answer
  // clients that do not finish a request.
  server.on('timeout', (socket: TrackedSocket) => {
    const isIdle = socket.timeout !== timeouts.stallTimeoutMs
    if (isIdle || socket.writableLength > 0) socket.destroy()
  })

  return {
    server,
    async drain(grace) {
      lifecycle.isDraining = true
      const cut = await drain(server, connections, timeouts, grace)
      log.close()
      return cut
    },
  }
}

function findEscapeFault(url: string, path: string | undefined): Failure | undefined {
  if (path !== undefined) return undefined
  const isBroken = /%(?![0-9a-f]{2})/i.test(url)
  return malformed(
    isBroken
      ? 'The URL has a percent sign that does not start an escape.'
      : 'The escapes in the URL are not UTF-8.',
  )
}

function tooManyWaiting(): Failure {
  return new Failure(
    50300,
    'Too many requests wait on this connection. This one and those after it were not done: send them again.',
  )
}

/** Request ids are unique over restarts and processes: a random start, then a count. */
function buildRequestIds(): () => string {
  const start = randomBytes(6).toString('base64url')
  let count = 0
  return () => `${start}-${(++count).toString(36)}`
}
