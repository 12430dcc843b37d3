import { lookup } from 'node:dns/promises'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { type Limits, limits as standardLimits } from './contract/limits.ts'
import { buildApp } from './http/app.ts'
import { drain } from './http/lifecycle.ts'
import { openStore } from './store/open.ts'
import type { Store, StoreEvents } from './store/store.ts'
import { openTokenVerifier } from './tokens/verify.ts'

export interface Service {
  /** The address to paste, such as http://127.0.0.1:3000. */
  readonly url: string
  readonly store: Store
  /** Answers what was accepted, then lets go of everything. Tells how many connections had to be cut. */
  close(): Promise<number>
}

export interface ServiceOptions {
  readonly config: Config
  readonly logger: Logger
  /** Instead of the store that the configuration names. */
  readonly store?: Store
  readonly limits?: Limits
}

/** Opens the whole service: the store, the check of tokens, the HTTP side, the port. */
export async function openService(options: ServiceOptions): Promise<Service> {
  const { config, logger, limits = standardLimits } = options
  const store = options.store ?? (await openStore(config.storeLocation, toEvents(logger)))
  const tokens = await openTokenVerifier({
    store,
    operatorToken: config.operatorToken,
    onError: (err) => logger.debug({ err }, 'the store could not be asked about tokens'),
  })
  const lifecycle = { isDraining: false }
  const { publicUrl, allowedOrigins } = config
  const app = buildApp({ store, tokens, logger, lifecycle, publicUrl, allowedOrigins, limits })

  async function close(): Promise<number> {
    try {
      const cut = await drain(app.server, lifecycle, limits)
      await app.close()
      await tokens.close()
      return cut
    } finally {
      await store.close()
    }
  }

  try {
    // One address: for a name with several, Fastify would open servers beside the one that we have set up.
    const { address } = await lookup(config.host)
    await app.listen({ port: config.port, host: address })
  } catch (error) {
    await tokens.close()
    await store.close()
    throw error
  }
  return { url: toUrl(app.server.address() as AddressInfo), store, close }
}

function toEvents(logger: Logger): StoreEvents {
  return {
    onLost: (err) =>
      logger.warn({ err }, 'the store is away: requests are refused until it is back'),
    onFound: () => logger.info('the store is back'),
  }
}

/** The address to paste, for what a server listens on. */
export function toUrl({ address, port }: Pick<AddressInfo, 'address' | 'port'>): string {
  if (address === '0.0.0.0' || address === '::') return `http://127.0.0.1:${port}`
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`
}
