import type { Logger } from 'pino'
import type { Timeouts } from '../contract/limits.ts'
import type { JournalReader } from '../journal/reader.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Store } from '../store/store.ts'
import type { TokenVerifier } from '../tokens/verify.ts'
import type { EventStreams } from './event-streams.ts'
import type { Imports } from './imports.ts'
import type { AllowedOrigins } from './protocol.ts'
import type { RateLimit, TokenCount } from './rate-limit.ts'
import type { RequestLog } from './request-log.ts'

/** What the HTTP side needs of the rest of the service. */
export interface Parts {
  readonly store: Store
  readonly reader: JournalReader
  readonly tokens: TokenVerifier
  readonly metrics: Metrics
  readonly logger: Logger
  readonly timeouts: Timeouts
  readonly settings: Settings
}

/** What the operator has set. */
export interface Settings {
  readonly publicUrl: string | undefined
  readonly allowedOrigins: AllowedOrigins
  readonly rateLimit: RateLimit | undefined
  /** The number of trusted proxies in front (`X-Forwarded-For`). */
  readonly trustedProxies: number
  readonly journalKeepMs: number | 'off'
}

/** The HTTP side of the service: all that the router, the handlers and the pages use. */
export interface App extends Parts {
  readonly imports: Imports
  readonly streams: EventStreams
  readonly log: RequestLog
  /** Counts the idempotency keys of each token. */
  readonly countKey: TokenCount
  /** Whether the service is shutting down. Answers then close their connections. */
  isDraining: boolean
}
