import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { JournalReader } from '../journal/reader.ts'
import type { Claim, Receiver } from '../store/receivers.ts'
import type { Store } from '../store/store.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { HealthNews } from './health.ts'
import type { Job } from './job.ts'
import { openPace } from './pace.ts'
import { buildRoster } from './roster.ts'
import { openSaver } from './saver.ts'
import { defaultSettings, maxOnTheirWay, type SenderSettings } from './settings.ts'
import type { Outcome } from './transport.ts'

/** Sends the changes of the journal to the receivers whose lease this process holds. */
export interface Sender {
  /** Lets requests under way end, saves how far each receiver is, and gives up the leases. */
  close(): Promise<void>
}

export interface SenderOptions {
  readonly store: Store
  readonly reader: Pick<JournalReader, 'read'>
  readonly logger: Pick<Logger, 'debug' | 'info' | 'warn'>
  /** How many requests of clients this process has received so far. */
  readonly countRequests: () => number
  readonly settings?: Partial<SenderSettings>
}

/** Changes that come this close together are looked for once. */
const wakeMs = 5

/** Opens the sender. At rest it looks at one number of the store, however many receivers it has. */
export function openSender({
  store,
  reader,
  logger,
  countRequests,
  ...options
}: SenderOptions): Sender {
  const settings = { ...defaultSettings, ...options.settings }
  const owner = randomUUID()
  const onError = (err: unknown) => logger.debug({ err }, 'webhooks: the store failed')
  const pace = openPace({ countRequests, onFree: pumpAll })
  const roster = buildRoster({
    store: store.receivers,
    owner,
    settings,
    open,
    flush: () => saver.flush(),
    onChange: watchAndPump,
  })
  const saver = openSaver({
    store: store.receivers,
    owner,
    list: roster.list,
    onLost: roster.drop,
    isBusy: pace.isBusy,
    onError,
  })
  let isClosed = false
  let lookTimer: NodeJS.Timeout | undefined
  let wakeTimer: NodeJS.Timeout | undefined
  let stopWatching: (() => void) | undefined
  let looking = look()

  async function look(): Promise<void> {
    await roster.look().catch(onError)
    if (isClosed) return
    lookTimer = setTimeout(() => {
      looking = look()
    }, settings.lookMs).unref()
  }

  async function open(receiver: Receiver, claim: Claim): Promise<Dispatcher> {
    const { timeoutMs, authorities } = settings
    const { id, url } = receiver
    const waiting = await store.receivers.listDeliveries(id, 'waiting')
    // Loaded for the first receiver: a service without any starts sooner.
    const { openDispatcher } = await import('./dispatcher.ts')
    const { openTransport } = await import('./transport.ts')
    return openDispatcher({
      receiver,
      claim,
      waiting,
      transport: openTransport({ url, connections: maxOnTheirWay, timeoutMs, authorities }),
      settings,
      readPage: reader.read,
      findPlant: store.receivers.findPlant,
      isHeld: roster.isHeld,
      takeTurn: pace.take,
      onUnsaved: saver.request,
      onFailure: (job, outcome, pause) => report(id, job, outcome, pause),
      onHealth: (news, outcome) => reportHealth(id, news, outcome),
      onError,
    })
  }

  // Never the URL: it may hold a secret of the receiver.
  function report(receiver: string, job: Job, outcome: Outcome, pause: string | undefined): void {
    const { position, attempts } = job
    const { status, error } = outcome
    logger.debug({ receiver, position, attempts, status, error }, 'webhooks: an attempt failed')
    if (job.state === 'failed') {
      logger.warn({ receiver, position, error }, 'webhooks: a change was given up')
    }
    if (pause !== undefined) {
      logger.warn({ receiver, reason: pause }, 'webhooks: the receiver is paused')
    }
  }

  function reportHealth(receiver: string, news: HealthNews, { status, error }: Outcome): void {
    if (news === 'works again') logger.info({ receiver }, 'webhooks: the receiver works again')
    if (news !== 'failing') return
    const words = 'webhooks: the receiver is failing; its changes are retried'
    logger.warn({ receiver, status, error }, words)
  }

  /** Watches the journal while there is a receiver to deliver to. */
  function watchAndPump(): void {
    if (roster.size() === 0 || isClosed) stopWatch()
    else stopWatching ??= store.watchJournal(onCommit)
    pumpAll()
  }

  function stopWatch(): void {
    stopWatching?.()
    stopWatching = undefined
  }

  function onCommit(): void {
    wakeTimer ??= setTimeout(() => {
      wakeTimer = undefined
      for (const dispatcher of roster.list()) dispatcher.wake()
    }, wakeMs).unref()
  }

  function pumpAll(): void {
    for (const dispatcher of roster.list()) dispatcher.pump()
  }

  async function haltAll(): Promise<void> {
    const waiting = new AbortController()
    const { signal } = waiting
    const late = sleep(settings.closeMs, undefined, { signal }).catch(() => {})
    await Promise.race([Promise.all([...roster.list()].map(({ halt }) => halt())), late])
    waiting.abort()
  }

  async function close(): Promise<void> {
    isClosed = true
    clearTimeout(lookTimer)
    await looking
    stopWatch()
    await haltAll()
    await saver.flush()
    for (const timer of [lookTimer, wakeTimer]) clearTimeout(timer)
    saver.close()
    pace.close()
    for (const dispatcher of [...roster.list()]) roster.drop(dispatcher)
    await store.receivers.release(owner).catch(onError)
  }

  return { close }
}
