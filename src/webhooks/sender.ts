import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { JournalReader } from '../journal/reader.ts'
import type { Claim, Receiver } from '../store/receivers.ts'
import type { Store } from '../store/store.ts'
import { buildLeases } from './leases.ts'
import { defaultSettings, type SenderSettings } from './settings.ts'
import type { Worker } from './worker.ts'

/** Sends the changes of the journal to the receivers whose lease this process holds. */
export interface Sender {
  /** Waits for requests in flight, saves their outcomes, and releases the leases. */
  close(): Promise<void>
}

export interface SenderOptions {
  readonly store: Store
  readonly reader: Pick<JournalReader, 'read'>
  readonly logger: Pick<Logger, 'debug' | 'info' | 'warn'>
  readonly settings?: Partial<SenderSettings>
}

/** Commits this close together are read together. */
const wakeMs = 5
/** How many workers are filled at a time: each may read a page of 1 MiB. */
const fillsAtOnce = 8

/**
 * Opens the sender. It polls the revision of the receivers: that is all it does without any. With
 * receivers it also renews its leases every `renewMs`, and watches the journal for all of them.
 */
export function openSender({ store, reader, logger, ...options }: SenderOptions): Sender {
  const settings = { ...defaultSettings, ...options.settings }
  const owner = randomUUID()
  const onError = (err: unknown) => logger.debug({ err }, 'webhooks: the store failed')
  const leases = buildLeases({
    store: store.receivers,
    owner,
    settings,
    open,
    onChange: watchAndPump,
  })
  const demanding = new Set<Worker>()
  let filling: Promise<void> | undefined
  let isClosed = false
  let pollTimer: NodeJS.Timeout | undefined
  let wakeTimer: NodeJS.Timeout | undefined
  let stopWatching: (() => void) | undefined
  let polling = poll()

  async function poll(): Promise<void> {
    await leases.poll().catch(onError)
    if (isClosed) return
    pumpAll()
    pollTimer = setTimeout(() => {
      polling = poll()
    }, settings.pollMs).unref()
  }

  async function open(receiver: Receiver, claim: Claim): Promise<Worker> {
    const { timeoutMs } = settings
    // Loaded for the first receiver, so that a service without any starts faster.
    const { openWorker } = await import('./worker.ts')
    const { openTransport } = await import('./transport.ts')
    const worker: Worker = openWorker({
      receiver,
      claim,
      owner,
      transport: openTransport({ url: receiver.url, timeoutMs }),
      settings,
      store: store.receivers,
      readPage: reader.read,
      maxRows,
      logger,
      isHeld: leases.isHeld,
      onLost: () => leases.drop(worker),
      onRefused: () => leases.reopen(worker),
      onDemand: () => fill(worker),
      onError,
    })
    return worker
  }

  /** Receivers share `keptInAll`, so that 100 of them with 8 KiB each hold 128 MiB at most. */
  function maxRows(): number {
    const share = Math.floor(settings.keptInAll / Math.max(leases.workers.size, 1))
    return Math.min(settings.keptDeliveries, share)
  }

  function fill(worker: Worker): void {
    demanding.add(worker)
    filling ??= fillAll()
  }

  /** Fills the workers that have room, a few at a time. */
  async function fillAll(): Promise<void> {
    while (demanding.size > 0 && !isClosed) {
      // Yields, because many pages of unwanted changes would block the event loop.
      await nextTurn()
      const some = demanding.values().take(fillsAtOnce).toArray()
      for (const worker of some) demanding.delete(worker)
      await Promise.all(some.map((worker) => worker.fill()))
    }
    filling = undefined
  }

  /** Watches the journal while there is a receiver to deliver to. */
  function watchAndPump(): void {
    if (leases.workers.size === 0 || isClosed) stopWatch()
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
      for (const worker of leases.workers.values()) worker.wake()
    }, wakeMs).unref()
  }

  function pumpAll(): void {
    for (const worker of leases.workers.values()) worker.pump()
  }

  async function close(): Promise<void> {
    isClosed = true
    clearTimeout(pollTimer)
    await polling
    stopWatch()
    const workers = [...leases.workers.values()]
    const late = sleep(settings.closeMs, undefined, { ref: false })
    await Promise.race([Promise.all(workers.map(({ halt }) => halt('closing'))), late])
    await filling
    await Promise.all(workers.map(({ finish }) => finish()))
    clearTimeout(wakeTimer)
    for (const worker of workers) leases.drop(worker)
    await store.receivers.release(owner).catch(onError)
  }

  return { close }
}
