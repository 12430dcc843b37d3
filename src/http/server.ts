import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { nextTick } from 'node:process'
import type { Logger } from 'pino'
import { contentTypeOptions } from '../contract/headers.ts'
import { defaultTimeouts, limits, type Timeouts } from '../contract/limits.ts'
import { overloaded, type Store } from '../store/store.ts'
import type { TokenVerifier } from '../tokens/verify.ts'
import { buildClientErrors } from './client-errors.ts'
import { type AllowedOrigins, allowOrigin } from './cors.ts'
import { addField, type Exchange } from './exchange.ts'
import { malformed, sendFailure, toFailure } from './failures.ts'
import { buildHandlers } from './handlers.ts'
import type { Lifecycle } from './lifecycle.ts'
import { buildOperations } from './operations.ts'
import { buildPages } from './pages.ts'
import { findProtocolFault, isFramedOddly, toOriginForm } from './protocol.ts'
import type { RateLimit } from './rate-limit.ts'
import { buildRoutes, type FoundRoute, toPath } from './routes.ts'
import { answerUnrouted } from './unrouted.ts'

/** How many requests may wait on one connection: more than fit into what is read at once, unless they say next to nothing. */
const maxWaiting = 500

export interface ServerParts {
  readonly store: Store
  readonly tokens: TokenVerifier
  readonly logger: Logger
  readonly lifecycle: Lifecycle
  readonly publicUrl: string | undefined
  readonly allowedOrigins: AllowedOrigins
  readonly rateLimit: RateLimit | undefined
  readonly timeouts?: Timeouts
}

/** Builds the HTTP side of the service. It does not listen. */
export function buildServer(parts: ServerParts): Server {
  const { store, tokens, logger, lifecycle, publicUrl, allowedOrigins, rateLimit } = parts
  const timeouts = parts.timeouts ?? defaultTimeouts
  const newRequestId = buildRequestIds()
  const clientErrors = buildClientErrors(newRequestId, timeouts)
  const waitingBy = new WeakMap<Socket, number>()
  const findRoute = buildRoutes([
    ...buildOperations({
      handlers: buildHandlers(store),
      tokens,
      rateLimit,
      publicUrl,
      timeouts,
      fail,
    }),
    ...buildPages({ store, lifecycle, publicUrl, fail }),
  ])

  const server = createServer({
    requestTimeout: timeouts.requestTimeoutMs,
    headersTimeout: timeouts.headersTimeoutMs,
    connectionsCheckingInterval: Math.min(1_000, timeouts.headersTimeoutMs / 2),
    keepAliveTimeout: timeouts.keepAliveTimeoutMs,
    maxHeaderSize: limits.headerBytes,
    // The two that Node would answer or repair without our knowledge.
    requireHostHeader: false,
    joinDuplicateHeaders: true,
    // What has no body needs no stream for it.
    optimizeEmptyRequests: true,
  })
  server.timeout = timeouts.stallTimeoutMs

  function receive(request: IncomingMessage, response: ServerResponse): void {
    const previous = clientErrors.track(request, response)
    if (previous === undefined) begin(request, response)
    else waitBehind(previous, request, response)
  }

  // Pipelined: it sees what the one before it did, and a client that does not read has one answer prepared, not many.
  function waitBehind(
    previous: ServerResponse,
    request: IncomingMessage,
    response: ServerResponse,
  ) {
    const { socket } = request
    const waiting = (waitingBy.get(socket) ?? 0) + 1
    if (waiting > maxWaiting) {
      socket.destroy()
      return
    }
    waitingBy.set(socket, waiting)
    let isWaiting = true
    // Nothing more is read meanwhile, so that who sends on and does not read is idle, and is cut. Node reads on at the end
    // of each request, in a tick of its own: this comes behind it.
    nextTick(nextTick, () => {
      if (isWaiting) socket.pause()
    })
    previous.once('close', () => {
      isWaiting = false
      waitingBy.set(socket, (waitingBy.get(socket) ?? 1) - 1)
      if (clientErrors.isLast(response)) socket.resume()
      begin(request, response)
    })
  }

  function begin(request: IncomingMessage, response: ServerResponse): void {
    // Behind a last answer nothing is begun: it would be done, and nobody would hear of it (RFC 9112, section 9.6).
    if (!request.socket.writable) return
    const id = newRequestId()
    const url = toOriginForm(request.url ?? '')
    const fields = ['X-Request-Id', id, 'X-Content-Type-Options', contentTypeOptions]
    const exchange: Exchange = { id, request, response, url, fields }
    // What every answer carries, whatever becomes of the request.
    if (isLast(request)) addField(exchange, 'Connection', 'close')
    allowOrigin(exchange, allowedOrigins)
    judge(exchange)
  }

  // What is pipelined behind an upgrade is lost in Node: the client shall not wait for it.
  function isLast(request: IncomingMessage): boolean {
    return lifecycle.isDraining || request.headers.upgrade !== undefined || isFramedOddly(request)
  }

  function judge(exchange: Exchange): void {
    const path = toPath(exchange.url)
    const found = path === undefined ? undefined : findRoute(path)
    const fault = findProtocolFault(exchange) ?? (path === undefined ? brokenEscape() : undefined)
    if (logger.isLevelEnabled('debug')) logAnswer(exchange, found)
    if (fault !== undefined) sendFailure(exchange, fault)
    else if (store.isFull() && !found?.route.isPage) sendFailure(exchange, overloaded())
    else answer(exchange, found)
  }

  function answer(exchange: Exchange, found: FoundRoute | undefined): void {
    const handle = found?.route.handles.get(exchange.request.method ?? '')
    if (found === undefined || handle === undefined) {
      answerUnrouted(exchange, found?.route.allow)
      return
    }
    try {
      handle(exchange, found.id)
    } catch (error) {
      fail(exchange, error)
    }
  }

  function fail(exchange: Exchange, error: unknown): void {
    const { id, response } = exchange
    const failure = toFailure(error)
    // A refusal because of too much to do is no news, and would come in great numbers.
    if (failure.number >= 50000 && failure.number !== 50300) {
      logger.error({ requestId: id, error: failure.number, err: failure.cause }, failure.message)
    }
    // Half an answer cannot be taken back; that it is cut off is all that its client can hear.
    if (response.headersSent) response.destroy()
    else sendFailure(exchange, failure)
  }

  function logAnswer({ id, request, response }: Exchange, found: FoundRoute | undefined): void {
    const begunAt = performance.now()
    response.once('finish', () => {
      const { method } = request
      const { statusCode } = response
      const ms = performance.now() - begunAt
      logger.debug({ requestId: id, method, path: found?.route.path, statusCode, ms }, 'answered')
    })
  }

  server.on('request', receive)
  // Node answers these two without a body, and cuts the connection on the next.
  server.on('checkContinue', receive)
  server.on('checkExpectation', receive)
  server.on('connect', (_, socket: Socket) => {
    clientErrors.refuse(socket, malformed('The method CONNECT is for proxies; this is none.'))
  })
  server.on('clientError', clientErrors.answer)
  // Cuts who does not read, and who is idle for too long. Who does not finish a request is answered, by other timers.
  server.on('timeout', (socket: Socket) => {
    const isIdle = socket.timeout !== timeouts.stallTimeoutMs
    if (isIdle || socket.writableLength > 0) socket.destroy()
  })
  return server
}

function brokenEscape() {
  return malformed('The URL has a percent sign that does not start an escape.')
}

/** Ids that are unique over restarts and processes: a random start, then a count. */
function buildRequestIds(): () => string {
  const start = randomBytes(6).toString('base64url')
  let count = 0
  return () => `${start}-${(++count).toString(36)}`
}
