import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import { type Failure, overloaded } from '../contract/errors.ts'
import { contentTypeOptions } from '../contract/headers.ts'
import { limits, type Timeouts } from '../contract/limits.ts'
import type { JournalReader } from '../journal/reader.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Counters } from '../metrics/requests.ts'
import type { Store } from '../store/store.ts'
import type { TokenVerifier } from '../tokens/verify.ts'
import { countFreeDescriptors } from './descriptors.ts'
import { buildEventStreams } from './event-streams.ts'
import { addField, countAnswer, type Exchange, recordAnswer } from './exchange.ts'
import { sendFailure, shuttingDown, toClientFailure, toFailure, toRawAnswer } from './failures.ts'
import { buildGate } from './gate.ts'
import { buildHandlers } from './handlers.ts'
import { buildImports } from './imports.ts'
import { hasLongBody } from './long-body.ts'
import { buildNodeServer, type NodeServer } from './node/server.ts'
import { buildOperations, toToken } from './operations.ts'
import { buildPages, type ServiceState } from './pages.ts'
import {
  type AllowedOrigins,
  allowOrigin,
  findEscapeFault,
  findProtocolFault,
  isLastRequest,
  toOriginForm,
} from './protocol.ts'
import type { RateLimit } from './rate-limit.ts'
import { openRequestLog } from './request-log.ts'
import { answerUnrouted, buildRoutes, type FoundRoute, toPath } from './routes.ts'

export interface ServerParts {
  readonly store: Store
  readonly reader: JournalReader
  readonly tokens: TokenVerifier
  readonly metrics: Metrics
  readonly logger: Logger
  readonly publicUrl: string | undefined
  readonly allowedOrigins: AllowedOrigins
  readonly rateLimit: RateLimit | undefined
  readonly trustedProxies: number
  readonly timeouts: Timeouts
  /** Whether there is a journal to be read. */
  readonly isJournaled: boolean
}

/** Builds the HTTP server of the service. */
export function buildServer(parts: ServerParts): Omit<NodeServer, 'countConnections'> {
  const { store, tokens, metrics, publicUrl, allowedOrigins, rateLimit, timeouts, isJournaled } =
    parts
  const state: ServiceState = { isDraining: false }
  const newRequestId = buildRequestIds()
  const { countersOf } = metrics
  const unrouted = countersOf()
  const log = openRequestLog(parts)
  const imports = buildImports(store)
  const streams = buildEventStreams(parts.reader, timeouts)
  const entries = [
    ...buildOperations({
      handlers: buildHandlers({ store, imports, streams, metrics }),
      tokens,
      rateLimit,
      publicUrl,
      timeouts,
      isJournaled,
    }),
    ...buildPages({ store, state, publicUrl }),
  ]
  const findRoute = buildRoutes(entries, countersOf)

  /** Answers a request. Those before it on its connection have been answered. */
  function begin(response: ServerResponse, leave: () => void, isLate: boolean): void {
    const request = response.req
    // After a closing answer it is not executed: it could not be answered (RFC 9112, 9.6).
    if (!request.socket.writable) {
      leave()
      return
    }
    const url = toOriginForm(request.url ?? '')
    const path = toPath(url)
    const found = path === undefined ? undefined : findRoute(path, request.method ?? '')
    const counters = found?.entry?.counters ?? unrouted
    counters.begun++
    const exchange = toExchange(response, url, counters, leave)
    if (log.hasRequests) log.begin(exchange, found)
    const fault = findProtocolFault(exchange) ?? findEscapeFault(url, path)
    if (fault !== undefined) refuse(exchange, fault)
    else if ((isLate || store.isFull()) && !found?.route.isServedUnderLoad) {
      refuse(exchange, overloaded(isLate ? 'gate' : 'write_queue'))
    } else answer(exchange, found)
  }

  function toExchange(
    response: ServerResponse,
    url: string,
    counters: Counters,
    leave: () => void,
  ): Exchange {
    const request = response.req
    const id = newRequestId()
    const exchange: Exchange = {
      id,
      request,
      response,
      url,
      fields: ['X-Request-Id', id, 'X-Content-Type-Options', contentTypeOptions],
      tokenId: undefined,
      error: undefined,
      startedAt: performance.now(),
      counters,
      leave,
    }
    if (state.isDraining || isLastRequest(request)) addField(exchange, 'Connection', 'close')
    // Every answer carries these headers, whatever becomes of the request.
    allowOrigin(exchange, allowedOrigins)
    return exchange
  }

  function answer(exchange: Exchange, found: FoundRoute | undefined): void {
    if (found?.entry === undefined) answerUnrouted(exchange, found?.route.allow)
    else found.entry.handle(exchange, found.id).catch((error: unknown) => fail(exchange, error))
  }

  function fail(exchange: Exchange, error: unknown): void {
    const failure = toFailure(error)
    log.fail(exchange, failure)
    // A part of the answer is sent. Only a cut connection can tell the client that it failed.
    if (exchange.response.headersSent) {
      exchange.response.destroy()
      exchange.error = failure.number
      recordAnswer(exchange, exchange.response.statusCode, 0)
    } else refuse(exchange, failure)
  }

  function refuse(exchange: Exchange, failure: Failure): void {
    metrics.countRefusal(failure)
    sendFailure(exchange, failure)
  }

  function toRefusal(failure: Failure, { remoteAddress }: Socket): string {
    const id = newRequestId()
    log.refuse(id, remoteAddress, failure)
    metrics.countRefusal(failure)
    unrouted.begun++
    countAnswer(unrouted, failure.number, 0, 0)
    return toRawAnswer(failure, id)
  }

  /** The id of the verified token. Everybody else is one caller. Health checks never wait. */
  function toCaller({ url, headers }: IncomingMessage): string | undefined {
    if (url === '/healthz' || url === '/readyz') return undefined
    return tokens.findId(toToken(headers.authorization)) ?? ''
  }

  const gate = buildGate({ toCaller, toWeight }, begin)
  const { server, drain, countConnections } = buildNodeServer(timeouts, {
    maxConnections: Math.min(limits.connections, countFreeDescriptors()),
    onConnection: gate.noteConnection,
    onRequest: gate.add,
    toFailure: (error) => toClientFailure(error, timeouts),
    toRefusal,
    hasLongBody,
    onDrop: metrics.countDrop,
  })
  metrics.watchConnections(countConnections)
  return {
    server,
    async drain(grace) {
      state.isDraining = true
      streams.endAll()
      const endImports = () => imports.endAll(shuttingDown(' Send the file again.'))
      const timer = setTimeout(endImports, timeouts.shutdownMs * importShareOfShutdown)
      const cut = await drain(grace)
      clearTimeout(timer)
      log.close()
      return cut
    },
  }
}

/** Imports that take longer than this part of a shutdown are ended, in time to be answered. */
const importShareOfShutdown = 0.5

/** A page of plants, however its path is spelled, counts as many other requests. */
function toWeight({ method, url = '' }: IncomingMessage): number {
  const isRead = method === 'GET' || method === 'HEAD'
  return isRead && !/^\/(?:plants\/|events)/.test(url) ? limits.pageWeight : 1
}

/** Request ids are unique across restarts and processes: a random start, then a count. */
function buildRequestIds(): () => string {
  const start = randomBytes(6).toString('base64url')
  let count = 0
  return () => `${start}-${(++count).toString(36)}`
}
