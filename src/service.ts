import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { type Limits, limits as standardLimits } from './contract/limits.ts'
import { buildApp } from './http/app.ts'
import { drain } from './http/lifecycle.ts'
import { openStore } from './store/open.ts'
import type { Store } from './store/store.ts'
import { openTokenVerifier } from './tokens/verify.ts'

export interface Service {
  /** The address to paste, such as http://127.0.0.1:3000. */
  readonly url: string
  readonly store: Store
  /** Answers what was accepted, then lets go of everything. */
  close(): Promise<void>
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
  const store = options.store ?? (await openStore(config.storeLocation))
  const tokens = await openTokenVerifier({
    store,
    operatorToken: config.operatorToken,
    onError: (err) => logger.warn({ err }, 'the store could not be asked about tokens'),
  })
  const lifecycle = { isDraining: false }
  const { publicUrl, allowedOrigins } = config
  const app = buildApp({ store, tokens, logger, lifecycle, publicUrl, allowedOrigins, limits })

  async function close(): Promise<void> {
    await drain(app.server, lifecycle, limits)
    await app.close()
    await tokens.close()
    await store.close()
  }

  try {
    await app.listen({ port: config.port, host: config.host })
  } catch (error) {
    await tokens.close()
    await store.close()
    throw error
  }
  return { url: toUrl(app.server.address() as AddressInfo), store, close }
}

function toUrl({ address, port }: AddressInfo): string {
  if (address === '0.0.0.0' || address === '::') return `http://127.0.0.1:${port}`
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`
}
