import type { FastifyInstance } from 'fastify'
import { type Logger, pino } from 'pino'
import { buildApp } from '../../src/http/app.ts'
import type { Store } from '../../src/store/store.ts'
import { openTokenVerifier } from '../../src/tokens/verify.ts'
import { token } from './service-process.ts'

export interface WrongApp {
  readonly url: string
  readonly log: string[]
  close(): Promise<void>
}

/** Makes the HTTP side wrong on purpose. */
export type SpoilApp = (app: FastifyInstance, logger: Logger, store: Store) => void

/** The HTTP side of the service on a store, spoilt before it listens. */
export async function openWrongApp(store: Store, spoil: SpoilApp): Promise<WrongApp> {
  const log: string[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => log.push(line) })
  const tokens = await openTokenVerifier({ store, operatorToken: token, onError() {} })
  const app = buildApp({
    store,
    tokens,
    logger,
    lifecycle: { isDraining: false },
    publicUrl: undefined,
    allowedOrigins: '*',
    rateLimit: undefined,
  })
  spoil(app, logger, store)
  return {
    url: await app.listen({ port: 0, host: '127.0.0.1' }),
    log,
    async close() {
      await app.close()
      await tokens.close()
      await store.close()
    },
  }
}

/** One method needs no token. */
export const openDeletes: SpoilApp = (app) => {
  app.addHook('onRequest', async ({ method, headers }) => {
    if (method === 'DELETE') headers.authorization = `Bearer ${token}`
  })
}

export const logHeaders: SpoilApp = (app, logger) => {
  app.addHook('onRequest', async ({ headers }) => logger.debug({ headers }, 'received'))
}

export const echoToken: SpoilApp = (app) => {
  app.addHook('onRequest', async ({ headers }, reply) => {
    // Half of it, as for somebody who wants to know which token it was.
    reply.header('X-Token', headers.authorization?.slice(-18) ?? '')
  })
}

export const storeToken: SpoilApp = (app, _, store) => {
  app.addHook('onRequest', async ({ headers }) => {
    await store.importPlants([{ id: 77n, name: String(headers.authorization) }], 'replace')
  })
}

export const spoilNothing: SpoilApp = () => {}
