import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import type { Failure } from '../contract/errors.ts'
import type { Exchange } from './exchange.ts'
import type { FoundRoute } from './routes.ts'

/** Writes what an operator wants to know of requests: each at `debug`, faults of ours at `error`. */
export function buildRequestLog(logger: Logger) {
  return {
    begin({ id, request, response }: Exchange, found: FoundRoute | undefined): void {
      if (!logger.isLevelEnabled('debug')) return
      const begunAt = performance.now()
      response.once('finish', () => {
        const { method } = request
        const { statusCode } = response
        const ms = performance.now() - begunAt
        logger.debug({ requestId: id, method, path: found?.route.path, statusCode, ms }, 'answered')
      })
    },

    fail({ id }: Exchange, failure: Failure): void {
      // Refusals of an overloaded service are no news, and come in great numbers.
      if (failure.number < 50000 || failure.number === 50300) return
      logger.error({ requestId: id, error: failure.number, err: failure.cause }, failure.message)
    },

    refuse(id: string, socket: Socket, failure: Failure): void {
      const { remoteAddress } = socket
      logger.debug({ requestId: id, client: remoteAddress, error: failure.number }, 'refused')
    },
  }
}
