import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Logger, pino } from 'pino'
import { defaultTimeouts } from '../../src/contract/limits.ts'
import { buildServer } from '../../src/http/server.ts'
import { toUrl } from '../../src/service.ts'
import type { Store } from '../../src/store/store.ts'
import { openTokenVerifier } from '../../src/tokens/verify.ts'
import { token } from './service-process.ts'

export interface WrongApp {
  readonly url: string
  readonly log: string[]
  close(): Promise<void>
}

/** Makes the HTTP side wrong on purpose. */
export type SpoilApp = (server: Server, logger: Logger, store: Store) => void

/** The HTTP side of the service on a store, spoilt before it listens. */
export async function openWrongApp(store: Store, spoil: SpoilApp): Promise<WrongApp> {
  const log: string[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => log.push(line) })
  const tokens = await openTokenVerifier({ store, operatorToken: token, onError() {} })
  const { server } = buildServer({
    store,
    tokens,
    logger,
    publicUrl: undefined,
    allowedOrigins: '*',
    rateLimit: undefined,
    trustedProxies: 0,
    timeouts: defaultTimeouts,
  })
  spoil(server, logger, store)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: toUrl(server.address() as AddressInfo),
    log,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await tokens.close()
      await store.close()
    },
  }
}

/** One method needs no token. */
export const openDeletes: SpoilApp = (server) => {
  server.prependListener('request', ({ method, headers }) => {
    if (method === 'DELETE') headers.authorization = `Bearer ${token}`
  })
}

export const logHeaders: SpoilApp = (server, logger) => {
  server.prependListener('request', ({ headers }) => logger.debug({ headers }, 'received'))
}

export const echoToken: SpoilApp = (server) => {
  server.prependListener('request', ({ headers }, response) => {
    // Half of it, as for somebody who wants to know which token it was.
    response.setHeader('X-Token', headers.authorization?.slice(-18) ?? '')
  })
}

export const storeToken: SpoilApp = (server, _, store) => {
  server.prependListener('request', ({ headers }) => {
    void store.importPlants([{ id: 77n, name: String(headers.authorization) }], 'replace')
  })
}

export const spoilNothing: SpoilApp = () => {}
