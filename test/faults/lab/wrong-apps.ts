import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Logger, pino } from 'pino'
import { readConfig } from '../../../src/config.ts'
import { defaultTimeouts } from '../../../src/contract/limits.ts'
import { buildHttpServer } from '../../../src/http/http-server.ts'
import { buildReader } from '../../../src/journal/reader.ts'
import { toUrl } from '../../../src/service.ts'
import type { Store } from '../../../src/store/store.ts'
import { openTokenVerifier } from '../../../src/tokens/verify.ts'
import { openTestMetrics } from '../../support/metrics.ts'
import { releaseAfterTest, runOnce } from '../../support/release.ts'
import { token } from './service-process.ts'

export interface WrongApp {
  readonly url: string
  readonly log: string[]
  close(): Promise<void>
}

/** Spoils the HTTP side on purpose. */
export type SpoilApp = (server: Server, logger: Logger, store: Store) => void

/** Opens the HTTP side of the service on a store, spoilt. It is closed with the test. */
export async function openWrongApp(store: Store, spoil: SpoilApp): Promise<WrongApp> {
  const log: string[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => log.push(line) })
  const tokens = await openTokenVerifier({ store, operatorToken: token, onError() {} })
  const { server } = buildHttpServer({
    store,
    reader: buildReader(store),
    tokens,
    metrics: openTestMetrics(store),
    logger,
    timeouts: defaultTimeouts,
    settings: readConfig({}, {}),
  })
  spoil(server, logger, store)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const close = runOnce(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await tokens.close()
    await store.close()
  })
  releaseAfterTest(close)
  return { url: toUrl(server.address() as AddressInfo), log, close }
}

/** Lets a method pass without a token. */
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
    // Half of it, as a hint which token it was.
    response.setHeader('X-Token', headers.authorization?.slice(-18) ?? '')
  })
}

export const storeToken: SpoilApp = (server, _, store) => {
  server.prependListener('request', ({ headers }) => {
    void store.importPlants([{ id: 77n, name: String(headers.authorization) }], 'replace')
  })
}

export const spoilNothing: SpoilApp = () => {}
