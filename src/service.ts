import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { defaultTimeouts, limits, type Timeouts } from './contract/limits.ts'
import { buildHttpServer } from './http/http-server.ts'
import type { Grace } from './http/node/node-server.ts'
import { buildReader } from './journal/reader.ts'
import { boundJournal, type JournalBound, trimOld } from './journal/trim.ts'
import { type JoinProcesses, openMetrics } from './metrics/metrics.ts'
import { repeat } from './repeat.ts'
import { openStore } from './store/open.ts'
import type { Store, StoreEvents } from './store/store.ts'
import { openIssuer } from './tokens/issuer.ts'
import { openTokenVerifier } from './tokens/verify.ts'
import type { SenderSettings } from './webhooks/sender.ts'
import { openSender } from './webhooks/sender.ts'

export interface Service {
  /** The address to paste, such as http://127.0.0.1:3000. */
  readonly url: string
  readonly store: Store
  /** Answers accepted requests, then releases everything. Returns how many connections were cut. */
  close(grace?: Grace): Promise<number>
}

export interface ServiceOptions {
  readonly config: Config
  readonly logger: Logger
  /** Instead of the store that the configuration names. */
  readonly store?: Store
  readonly timeouts?: Timeouts
  /** Settings of the webhook sender that differ from the default ones. */
  readonly webhooks?: Partial<SenderSettings>
  /** Called before a new store is made. Throws to prevent that. */
  readonly onNewStore?: (() => void) | undefined
  /** Which release this is, for the metrics. */
  readonly version?: string
  /** Joins the metrics of all processes that serve the port. */
  readonly joinProcesses?: JoinProcesses
}

/** A token that was used within this time counts as in use. */
const inUseMs = 5 * 60_000
/** How often expired idempotency keys and old changes are deleted. */
const forgetMs = 60_000
/** How often the size of the journal is measured. */
const measureMs = 1_000
/** The log mentions dropped changes at most this often. */
const droppedMs = 60 * 60_000

/** Opens the whole service: the store, the token verifier, the HTTP server and its port. */
export async function openService(options: ServiceOptions): Promise<Service> {
  const { config, logger } = options
  const store =
    options.store ??
    (await openStore(
      config.storeLocation,
      { ...toStoreEvents(logger), onNew: () => options.onNewStore?.() },
      config.journalKeepMs === 'off' ? 'off' : 'on',
    ))
  try {
    return await openOnStore(store, options)
  } catch (error) {
    await store.close()
    throw error
  }
}

async function openOnStore(store: Store, options: ServiceOptions): Promise<Service> {
  const { config, logger, timeouts = defaultTimeouts, version = '', joinProcesses } = options
  const onError = (err: unknown) => logger.debug({ err }, 'the store failed in the background')
  const issuer =
    config.issuer && (await openIssuer({ ...config.issuer, ...toIssuerEvents(options) }))
  const tokens = await openTokenVerifier({
    store,
    operatorToken: config.operatorToken,
    issuer,
    onError,
  })
  const bound = boundJournal(store, config.journalMaxBytes)
  const stopJobs = [
    repeat(() => forgetKeys(store), forgetMs, onError),
    startTrimming(store, config.journalKeepMs, onError),
    ...(config.journalKeepMs === 'off' ? [] : [startBounding(bound, logger, onError)]),
  ]

  const metrics = openMetrics({
    version,
    engine: config.storeLocation.engine,
    store,
    journal: bound.measures,
    tokensInUse: () => tokens.countUsed(Date.now() - inUseMs),
    ...(joinProcesses && { joinProcesses }),
  })

  async function stopBackground(): Promise<void> {
    for (const stop of stopJobs) stop()
    metrics.close()
    await tokens.close()
  }

  try {
    const { port, host, journalKeepMs } = config
    const reader = buildReader(store)
    const parts = { store, reader, tokens, metrics, logger, timeouts, settings: config }
    const { server, drain } = buildHttpServer(parts)
    await once(server.listen({ port, host }), 'listening')
    const sender =
      journalKeepMs === 'off'
        ? undefined
        : openSender({ store, reader, logger, settings: options.webhooks ?? {} })

    return {
      url: toUrl(server.address() as AddressInfo),
      store,
      async close(grace = 'short') {
        try {
          // Concurrently, so that the waits for slow clients and slow receivers do not add up.
          const [cut] = await Promise.all([drain(grace), sender?.close()])
          await stopBackground()
          return cut
        } finally {
          await store.close()
        }
      },
    }
  } catch (error) {
    await stopBackground()
    throw error
  }
}

/** Deletes expired idempotency keys, in steps, so that requests are served in between. */
async function forgetKeys(store: Store): Promise<void> {
  while (!(await store.forgetKeys(Date.now() - limits.keyLifetimeMs)));
}

/**
 * Trims the journal, also while it is off. The first trim is at the start: on a full disk, a
 * shorter time frees space.
 */
function startTrimming(
  store: Store,
  keepMs: number | 'off',
  onError: (error: unknown) => void,
): () => void {
  async function trim(): Promise<void> {
    // Another process may have switched the journal on since.
    if (keepMs === 'off' && (await store.newestPosition()) !== 'off') return
    await trimOld(store, keepMs)
  }
  trim().catch(onError)
  return repeat(trim, forgetMs, onError)
}

/** Keeps the journal within its size limit, and logs when that drops changes. */
function startBounding(
  bound: JournalBound,
  logger: Logger,
  onError: (error: unknown) => void,
): () => void {
  let loggedAt = -Infinity
  async function keep(): Promise<void> {
    const before = bound.measures.droppedChanges
    await bound.keep()
    const changes = bound.measures.droppedChanges - before
    if (changes === 0 || performance.now() < loggedAt + droppedMs) return
    loggedAt = performance.now()
    logger.warn(
      { changes },
      'the journal has reached JOURNAL_MAX: its oldest changes are dropped before JOURNAL_KEEP',
    )
  }
  return repeat(keep, measureMs, onError)
}

/** Logs what happens to the store. */
export function toStoreEvents(logger: Logger): StoreEvents {
  return {
    onLost: (err) =>
      logger.warn({ err }, 'the store is away: requests are refused until it is back'),
    onFound: () => logger.info('the store is back'),
    onMigrated: ({ from, to, durationMs }) =>
      logger.info({ durationMs }, `migrated the store from schema ${from} to schema ${to}`),
  }
}

function toIssuerEvents({ logger, timeouts = defaultTimeouts }: ServiceOptions) {
  return {
    timeoutMs: timeouts.issuerMs,
    onAway: (err: unknown) =>
      logger.warn(
        { err },
        'the issuer of JSON Web Tokens cannot be asked: its known keys still count',
      ),
    onBack: () => logger.info('the issuer of JSON Web Tokens answers again'),
  }
}

/** The URL of a listening server, ready to paste. */
export function toUrl({ address, port }: Pick<AddressInfo, 'address' | 'port'>): string {
  if (address === '0.0.0.0' || address === '::') return `http://127.0.0.1:${port}`
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`
}
