import type { Failure } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import { findDescriptorLimit } from '../metrics/process.ts'
import { countAnswer, newRequestId } from './answer.ts'
import type { App, Parts } from './app.ts'
import { buildEventStreams } from './event-streams.ts'
import { buildGate } from './gate.ts'
import { buildImports } from './imports.ts'
import { buildNodeServer, type Grace } from './node/node-server.ts'
import { toClientFailure, toRawAnswer } from './protocol.ts'
import { buildTokenCount } from './rate-limit.ts'
import { buildRequestLog } from './request-log.ts'
import { buildRouter } from './router.ts'
import { shuttingDown } from './web-pages.ts'

/** Builds the HTTP server of the service. It does not listen yet. */
export function buildHttpServer(parts: Parts) {
  const { store, tokens, metrics, timeouts } = parts
  const app: App = {
    ...parts,
    imports: buildImports(store),
    streams: buildEventStreams(parts.reader, timeouts),
    log: buildRequestLog(parts.logger, parts.settings.trustedProxies),
    countKey: buildTokenCount(limits.keyLifetimeMs),
    isDraining: false,
  }
  const unrouted = metrics.countersOf()

  /** The answer to bytes that are no request. */
  function toRefusal(failure: Failure, address: string | undefined): string {
    const id = newRequestId()
    app.log.refuse(id, address, failure)
    metrics.countRefusal(failure)
    unrouted.begun++
    countAnswer(unrouted, failure.number, 0, 0)
    return toRawAnswer(failure, id)
  }

  const gate = buildGate(tokens, buildRouter(app))
  const { server, drain, countConnections } = buildNodeServer(timeouts, {
    maxConnections: Math.min(limits.connections, countFreeDescriptors()),
    onConnection: gate.noteConnection,
    onRequest: gate.add,
    toFailure: (error) => toClientFailure(error, timeouts),
    toRefusal: (failure, { remoteAddress }) => toRefusal(failure, remoteAddress),
    onDrop: metrics.countDrop,
  })
  metrics.watchConnections(countConnections)
  return {
    server,
    /** Answers accepted requests, then closes. Returns how many connections had to be cut. */
    async drain(grace: Grace): Promise<number> {
      app.isDraining = true
      app.streams.endAll()
      const endImports = () => app.imports.endAll(shuttingDown(' Send the file again.'))
      const timer = setTimeout(endImports, timeouts.shutdownMs * importShareOfShutdown)
      const cut = await drain(grace)
      clearTimeout(timer)
      return cut
    },
  }
}

/** Imports that take longer than this part of a shutdown are ended, in time to be answered. */
const importShareOfShutdown = 0.5

/** Descriptors that connections leave for files, the store and requests to other services. */
const otherDescriptors = 500

/** How many descriptors connections may take. Half of a low limit is left for others. */
function countFreeDescriptors(): number {
  const limit = findDescriptorLimit()
  return Math.max(limit - otherDescriptors, Math.floor(limit / 2))
}
