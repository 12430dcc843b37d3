import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import type { ErrorNumber, Failure } from '../contract/errors.ts'
import type { Exchange } from './answer.ts'

/** Failures that requests meet while a disk is full, or the store or the issuer is away. */
const lastingFaults: readonly ErrorNumber[] = [50301, 50302, 50400, 50700]
/** How often such a fault is logged, with the number of requests that have met it since. */
const faultEveryMs = 60_000
/** A path that the contract does not know is logged up to this length. */
const maxPathLength = 200

export type RequestLog = ReturnType<typeof buildRequestLog>

/** Builds the log: each request at `debug`, server faults at `error`, a lasting one seldom. */
export function buildRequestLog(logger: Logger, trustedProxies: number) {
  const noteLasting = buildFaultLog(logger)

  function toClient({ headers, socket }: IncomingMessage): string | undefined {
    const forwarded = String(headers['x-forwarded-for'] ?? '').split(',')
    // Each proxy appends the address of its own client. Earlier entries may be forged.
    const address = trustedProxies > 0 ? forwarded.at(-trustedProxies)?.trim() : ''
    return address || socket.remoteAddress
  }

  return {
    /** Whether requests are logged, or faults only. */
    hasRequests: logger.isLevelEnabled('debug'),

    /** Logs a request once its answer has ended. */
    begin(exchange: Exchange): void {
      const { id: requestId, request, response, route, startedAt } = exchange
      response.once('close', () => {
        const { tokenId, error } = exchange
        const path = route ?? toShown(exchange.path)
        const status = response.headersSent ? response.statusCode : undefined
        const ms = Math.round((performance.now() - startedAt) * 1000) / 1000
        const client = toClient(request)
        const { method } = request
        const message = response.writableFinished ? 'answered' : 'broken off'
        const trace = toTrace(request)
        logger.debug(
          { requestId, ...trace, method, path, statusCode: status, error, tokenId, client, ms },
          message,
        )
      })
    },

    /** Logs a failure of the service, the store or the issuer. */
    fail({ id, request }: Exchange, failure: Failure): void {
      const { number } = failure
      // Refusals under overload are expected, and come in great numbers; an unknown version of
      // HTTP is the fault of the client.
      if (number < 50000 || number === 50300 || number === 50500) return
      const ids = { requestId: id, ...toTrace(request) }
      if (lastingFaults.includes(number)) noteLasting(ids, failure)
      else logger.error({ ...ids, error: number, err: failure.cause }, failure.message)
    },

    /** Logs bytes that are not a request. */
    refuse(requestId: string, client: string | undefined, { number }: Failure): void {
      logger.debug({ requestId, error: number, client }, 'refused')
    },
  }
}

/** A part of an unknown path that may be a token. Only its beginning is logged. */
const longPart = /([^/]{8})[^/]{12,}/g

function toShown(path: string | undefined): string | undefined {
  return path?.replaceAll(longPart, '$1…').slice(0, maxPathLength)
}

/** Version 00 of the header, and later ones, which may only append (W3C Trace Context, 3.2). */
const traceparent =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-|$)/

/** The trace that a request belongs to, and the span that sent it; undefined if it names none. */
function toTrace({ headers }: IncomingMessage): { traceId: string; parentId: string } | undefined {
  const [, traceId, parentId] = traceparent.exec(String(headers.traceparent ?? '')) ?? []
  return traceId && parentId ? { traceId, parentId } : undefined
}

function buildFaultLog(logger: Logger) {
  const faults = new Map<ErrorNumber, { loggedAt: number; requests: number }>()

  return (ids: { readonly requestId: string }, { number, cause, message }: Failure): void => {
    const now = performance.now()
    const fault = faults.get(number) ?? { loggedAt: -Infinity, requests: 0 }
    fault.requests++
    faults.set(number, fault)
    if (now - fault.loggedAt < faultEveryMs) return
    logger.error({ ...ids, error: number, requests: fault.requests, err: cause }, message)
    faults.set(number, { loggedAt: now, requests: 0 })
  }
}
