import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { JournalReader } from '../journal/reader.ts'
import type { Claim, Receiver } from '../store/receivers.ts'
import type { Store } from '../store/store.ts'
import { defaultRetryDelaysMs } from './schedule.ts'
import type { Worker } from './worker.ts'

export type Sender = ReturnType<typeof openSender>

export interface SenderOptions {
  readonly store: Store
  readonly reader: Pick<JournalReader, 'read'>
  readonly logger: Pick<Logger, 'debug' | 'info' | 'warn'>
  readonly settings?: Partial<SenderSettings>
}

/** The times and bounds of the sender. They are a parameter, so that tests can shorten them. */
export const defaultSettings = {
  retryDelaysMs: defaultRetryDelaysMs,
  patienceMs: 3 * 24 * 60 * 60 * 1000,
  /** How long a receiver may take to answer. */
  timeoutMs: 10_000,
  /** How long a lease is valid, and how often it is renewed. */
  leaseMs: 5_000,
  renewMs: 1_500,
  /** How often the store is asked whether an operator has changed a receiver. */
  pollMs: 400,
  /** How long a shutdown waits for requests in flight. */
  closeMs: 3_000,
  /** How many deliveries wait in memory: for a receiver, and for all receivers together. */
  keptDeliveries: 1_000,
  keptInAll: 16_000,
}

export type SenderSettings = Readonly<typeof defaultSettings>

/** Commits this close together are read together. */
const wakeMs = 5

/** For how many receivers the journal is read at once: a page may have 1 MiB. */
const readsAtOnce = 8

/**
 * Sends the changes of the journal to the receivers whose lease this process holds, with a worker
 * for each. It polls the revision of the receivers: that is all it does without any. With receivers
 * it also renews its leases every `renewMs`, and watches the journal for all of them.
 */
export function openSender({ store, reader, logger, ...options }: SenderOptions) {
  const settings = { ...defaultSettings, ...options.settings }
  const { receivers } = store
  const owner = randomUUID()
  const onError = (err: unknown) => logger.debug({ err }, 'webhooks: the store failed')
  /** Reads of the journal and what follows them. Each waits for one before it. */
  const lines = Array<Promise<void>>(readsAtOnce).fill(Promise.resolve())
  let nextLine = 0
  const workers = new Map<string, Worker>()
  let revision: bigint | undefined
  let hasReceivers = false
  let claimedAt = { monotonic: -Infinity, wall: -Infinity }
  /** Whether to claim at the next poll, instead of at the next renewal. */
  let hasNews = false
  let isClosed = false
  let pollTimer: NodeJS.Timeout | undefined
  let wakeTimer: NodeJS.Timeout | undefined
  let stopWatching: (() => void) | undefined
  let polling = poll()

  /** Runs a step after others, in a turn of its own: pages of unwanted changes take long. */
  function inLine(step: () => Promise<void>): Promise<void> {
    const line = nextLine++ % readsAtOnce
    const done = (lines[line] as Promise<void>).then(() => nextTurn()).then(step)
    lines[line] = done.catch(() => {})
    return done
  }

  async function poll(): Promise<void> {
    await keepLeases().catch(onError)
    if (isClosed) return
    watchAndPump()
    pollTimer = setTimeout(() => {
      polling = poll()
    }, settings.pollMs).unref()
  }

  /** Applies changes by operators, renews the leases, and claims those that are free. */
  async function keepLeases(): Promise<void> {
    const current = await receivers.revision()
    if (current !== revision) {
      hasReceivers = await refresh()
      hasNews = true
      revision = current
    }
    const isDue = hasNews || leaseAgeMs() >= settings.renewMs
    if (hasReceivers && isDue) await claim()
  }

  /**
   * By the clock that has moved further. The monotonic clock stands still while a virtual machine
   * is suspended; the wall clock may be set back, which must not extend a lease.
   */
  function leaseAgeMs(): number {
    return Math.max(performance.now() - claimedAt.monotonic, Date.now() - claimedAt.wall)
  }

  /** Applies what operators have changed. Returns whether there are any receivers. */
  async function refresh(): Promise<boolean> {
    const found = await listById()
    for (const worker of [...workers.values()]) {
      const receiver = found.get(worker.id)
      if (receiver === undefined) drop(worker)
      else if (receiver.state === 'paused' || worker.isPaused()) void retire(worker, 'paused')
      else worker.update(receiver.secrets)
    }
    return found.size > 0
  }

  async function claim(): Promise<void> {
    // Taken before the request, because in the store the lease may begin at any time after it.
    const askedAt = { monotonic: performance.now(), wall: Date.now() }
    hasNews = false
    const claims = await receivers.claim(owner, settings.leaseMs)
    claimedAt = askedAt
    const epochs = new Map(claims.map(({ id, epoch }) => [id, epoch]))
    for (const worker of [...workers.values()]) {
      if (epochs.get(worker.id) !== worker.epoch) drop(worker)
    }
    const fresh = claims.filter(({ id }) => !workers.has(id))
    const found = fresh.length > 0 ? await listById() : new Map<string, Receiver>()
    for (const one of fresh) {
      const receiver = found.get(one.id)
      if (receiver?.state === 'active') workers.set(one.id, await open(receiver, one))
    }
  }

  async function listById(): Promise<Map<string, Receiver>> {
    return new Map((await receivers.list()).map((receiver) => [receiver.id, receiver]))
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
      store: receivers,
      readPage: reader.read,
      maxRows,
      logger,
      isHeld: () => leaseAgeMs() < settings.leaseMs,
      onLost: () => drop(worker),
      onRefused: () => {
        // If the lease is lost, the next claim says so, and nothing waits for requests in flight.
        hasNews = true
        void retire(worker, 'closing')
      },
      inLine,
      onError,
    })
    return worker
  }

  /** Receivers share `keptInAll`, so that 100 of them with 8 KiB each hold 128 MiB at most. */
  function maxRows(): number {
    const share = Math.floor(settings.keptInAll / Math.max(workers.size, 1))
    return Math.min(settings.keptDeliveries, share)
  }

  /** Ends the work for a receiver, and saves its outcomes. */
  async function retire(worker: Worker, reason: 'paused' | 'closing'): Promise<void> {
    await worker.halt(reason)
    await worker.finish()
    drop(worker)
  }

  /** Stops delivering to a receiver, which another process may have taken over. */
  function drop(worker: Worker): void {
    worker.close()
    if (workers.get(worker.id) === worker) workers.delete(worker.id)
    // It may have been resumed meanwhile.
    hasNews = true
    watchAndPump()
  }

  /** Watches the journal while there is a receiver to deliver to. */
  function watchAndPump(): void {
    if (workers.size === 0 || isClosed) stopWatch()
    else stopWatching ??= store.watchJournal(onCommit)
    for (const worker of workers.values()) worker.pump()
  }

  function stopWatch(): void {
    stopWatching?.()
    stopWatching = undefined
  }

  function onCommit(): void {
    wakeTimer ??= setTimeout(() => {
      wakeTimer = undefined
      for (const worker of workers.values()) worker.wake()
    }, wakeMs).unref()
  }

  /** Waits for requests in flight, saves their outcomes, and releases the leases. */
  async function close(): Promise<void> {
    isClosed = true
    clearTimeout(pollTimer)
    await polling
    stopWatch()
    const held = [...workers.values()]
    const late = sleep(settings.closeMs, undefined, { ref: false })
    await Promise.race([Promise.all(held.map(({ halt }) => halt('closing'))), late])
    await Promise.all(held.map(({ finish }) => finish()))
    clearTimeout(wakeTimer)
    for (const worker of held) drop(worker)
    await receivers.release(owner).catch(onError)
  }

  return { close }
}
