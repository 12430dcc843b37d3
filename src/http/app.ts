import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { type Limits, limits as standardLimits } from '../contract/limits.ts'
import { overloaded, type Store } from '../store/store.ts'
import type { TokenVerifier } from '../tokens/verify.ts'
import { buildClientErrors } from './client-errors.ts'
import { type AllowedOrigins, allowOrigin } from './cors.ts'
import { malformed, sendFailure, toFailure } from './failures.ts'
import { addField, addFields } from './fields.ts'
import { buildHandlers } from './handlers.ts'
import type { Lifecycle } from './lifecycle.ts'
import { addOperations } from './operations.ts'
import { addPages } from './pages.ts'
import { findProtocolFault, isFramedOddly, toOriginForm } from './protocol.ts'
import type { RateLimit } from './rate-limit.ts'
import { answerUnrouted } from './unrouted.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Anybody may read it, even while the service is overloaded. */
    isPage?: boolean
  }
}

export interface AppParts {
  readonly store: Store
  readonly tokens: TokenVerifier
  readonly logger: Logger
  readonly lifecycle: Lifecycle
  readonly publicUrl: string | undefined
  readonly allowedOrigins: AllowedOrigins
  readonly rateLimit: RateLimit | undefined
  readonly limits?: Limits
}

/** Builds the HTTP side of the service. It does not listen. */
export function buildApp(parts: AppParts): FastifyInstance {
  const { store, tokens, logger, lifecycle, publicUrl, allowedOrigins, rateLimit } = parts
  const limits = parts.limits ?? standardLimits
  const newRequestId = buildRequestIds()
  const clientErrors = buildClientErrors(newRequestId)

  const app = Fastify({
    genReqId: newRequestId,
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: limits.stallTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    http: {
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: Math.min(1_000, limits.headersTimeoutMs / 2),
      maxHeaderSize: limits.headerBytes,
      // The two that Node would answer or repair without our knowledge.
      requireHostHeader: false,
      joinDuplicateHeaders: true,
    },
    routerOptions: { maxParamLength: limits.urlBytes },
    rewriteUrl: toOriginForm,
    // `drain` ends the connections, without refusing what comes in meanwhile.
    return503OnClosing: false,
    forceCloseConnections: false,
    clientErrorHandler: clientErrors.answer,
    frameworkErrors(_, request, reply) {
      clientErrors.track(request.raw, reply.raw)
      receive(request, reply)
      const url = 'The URL has a percent sign that does not start an escape.'
      sendFailure(reply, findProtocolFault(request.raw) ?? malformed(url))
    },
  })

  addFields(app)

  // What is pipelined behind an upgrade is lost in Node: the client shall not wait for it.
  function isLast(request: IncomingMessage): boolean {
    return lifecycle.isDraining || request.headers.upgrade !== undefined || isFramedOddly(request)
  }

  /** What every answer carries, whatever becomes of the request. */
  function receive(request: FastifyRequest, reply: FastifyReply): void {
    reply.fields = ['X-Request-Id', request.id]
    if (isLast(request.raw)) addField(reply.fields, 'Connection', 'close')
    allowOrigin(request, reply, allowedOrigins)
  }

  function begin(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    // Behind a last answer nothing is begun: it would be done, and nobody would hear of it (RFC 9112, section 9.6).
    if (!request.raw.socket.writable) return
    receive(request, reply)
    const fault = findProtocolFault(request.raw)
    if (fault !== undefined) sendFailure(reply, fault)
    else if (store.isFull() && !request.routeOptions.config?.isPage)
      sendFailure(reply, overloaded())
    else if (request.is404 || hasEmptyId(request)) answerUnrouted(request, reply)
    else done()
  }

  app.addHook('onRequest', (request, reply, done) => {
    const previous = clientErrors.track(request.raw, reply.raw)
    if (previous === undefined) {
      begin(request, reply, done)
      return
    }
    // Pipelined: it sees what the one before it did, and a client that does not read has one answer prepared, not many.
    // Nothing more is read meanwhile, so that who sends on and does not read is idle, and is cut.
    const { socket } = request.raw
    socket.pause()
    previous.once('close', () => {
      if (clientErrors.isLast(reply.raw)) socket.resume()
      begin(request, reply, done)
    })
  })

  app.setErrorHandler((error, request, reply) => {
    const failure = toFailure(error)
    // A refusal because of too much to do is no news, and would come in great numbers.
    if (failure.number >= 50000 && failure.number !== 50300) {
      logger.error(
        { requestId: request.id, error: failure.number, err: failure.cause },
        failure.message,
      )
    }
    sendFailure(reply, failure)
  })

  if (logger.isLevelEnabled('debug')) {
    app.addHook('onResponse', async ({ id, method, routeOptions }, reply) => {
      const { statusCode, elapsedTime } = reply
      logger.debug(
        { requestId: id, method, path: routeOptions.url, statusCode, ms: elapsedTime },
        'answered',
      )
    })
  }

  // Cuts who does not read, and who is idle for too long. Who does not finish a request is answered, by other timers.
  app.server.on('timeout', (socket: Socket) => {
    const isIdle = socket.timeout !== limits.stallTimeoutMs
    if (isIdle || socket.writableLength > 0) socket.destroy()
  })

  // Node answers the first two without a body, and cuts the connection on the last.
  app.server.on('checkContinue', (request, response) =>
    app.server.emit('request', request, response),
  )
  app.server.on('checkExpectation', (request, response) =>
    app.server.emit('request', request, response),
  )
  app.server.on('connect', (_, socket: Socket) => {
    clientErrors.refuse(socket, malformed('The method CONNECT is for proxies; this is none.'))
  })

  addOperations(app, { handlers: buildHandlers(store), tokens, rateLimit, publicUrl, limits })
  addPages(app, { store, lifecycle, publicUrl })
  return app
}

/** The router takes `/plants/` for a plant without an id. */
function hasEmptyId({ params }: FastifyRequest): boolean {
  return (params as { id?: string }).id === ''
}

/** Ids that are unique over restarts and processes: a random start, then a count. */
function buildRequestIds(): () => string {
  const start = randomBytes(6).toString('base64url')
  let count = 0
  return () => `${start}-${(++count).toString(36)}`
}
