import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { JournalReader } from '../journal/reader.ts'
import type { Claim, Receiver, Saved, Taken } from '../store/receivers.ts'
import type { Store } from '../store/store.ts'
import { buildLeases } from './leases.ts'
import { buildBudget } from './queue.ts'
import { defaultSettings, maxInFlight, retryMs, type SenderSettings } from './settings.ts'
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
/** How long an outcome waits for others, to share a save with them. */
const soonMs = 3
/** One take is for several receivers, until its bodies have this size. */
const stepBytes = 1024 * 1024
/** Bodies up to this size are sent however much is in flight. */
const smallBytes = 16 * 1024

/**
 * Opens the sender. It polls the revision of the receivers: that is all it does without any. With
 * receivers it also renews its leases every `renewMs`, and watches the journal for all of them.
 */
export function openSender({ store, reader, logger, ...options }: SenderOptions): Sender {
  const settings = { ...defaultSettings, ...options.settings }
  const owner = randomUUID()
  const onError = (err: unknown) => logger.debug({ err }, 'webhooks: the store failed')
  const waiting = buildBudget(settings.waitingBytes, 0, () => {})
  const inFlight = buildBudget(settings.inFlightBytes, smallBytes, () => setImmediate(pumpAll))
  const leases = buildLeases({
    store: store.receivers,
    owner,
    settings,
    open,
    flush: flushSaves,
    settle: () => taking,
    onChange: watchAndPump,
  })
  const demanding = new Set<Worker>()
  let feeding = Promise.resolve()
  let isFeeding = false
  let taking = Promise.resolve()
  let saves = Promise.resolve()
  let isSaveQueued = false
  let isClosed = false
  let pollTimer: NodeJS.Timeout | undefined
  let wakeTimer: NodeJS.Timeout | undefined
  let saveTimer: NodeJS.Timeout | undefined
  let stopWatching: (() => void) | undefined
  let polling = poll()

  async function poll(): Promise<void> {
    await leases.poll().catch(onError)
    if (isClosed) return
    pollTimer = setTimeout(() => {
      polling = poll()
    }, settings.pollMs).unref()
  }

  async function open(receiver: Receiver, claim: Claim): Promise<Worker> {
    const { timeoutMs, authorities } = settings
    const { url } = receiver
    // Loaded for the first receiver, so that a service without any starts faster.
    const { openWorker } = await import('./worker.ts')
    const { openTransport } = await import('./transport.ts')
    const worker: Worker = openWorker({
      receiver,
      claim,
      transport: openTransport({ url, connections: maxInFlight, timeoutMs, authorities }),
      settings,
      store: store.receivers,
      readPage: reader.read,
      logger,
      waiting,
      inFlight,
      isHeld: leases.isHeld,
      onDemand: () => feed(worker),
      onUnsaved: requestSave,
      onError,
    })
    return worker
  }

  function feed(worker: Worker): void {
    demanding.add(worker)
    if (!isFeeding) feeding = feedAll()
  }

  /** Reads for the workers that have room, and takes what they want, one step at a time. */
  async function feedAll(): Promise<void> {
    isFeeding = true
    while (demanding.size > 0 && !isClosed) {
      // Yields, because many pages of unwanted changes would block the event loop.
      await nextTurn()
      taking = readSome().then(takeAll)
      await taking
    }
    isFeeding = false
  }

  /** Reads until there is enough for a step. */
  async function readSome(): Promise<Map<Worker, Taken>> {
    const read = new Map<Worker, Taken>()
    let bytes = 0
    for (const worker of [...demanding]) {
      demanding.delete(worker)
      const taken = await worker.read()
      if (taken !== undefined) read.set(worker, taken)
      for (const { body } of taken?.deliveries ?? []) bytes += body.length
      if (bytes >= stepBytes) break
    }
    return read
  }

  async function takeAll(read: ReadonlyMap<Worker, Taken>): Promise<void> {
    if (read.size === 0) return
    try {
      const lost = new Set(await store.receivers.take(owner, [...read.values()]))
      for (const [worker, taken] of read) {
        if (lost.has(worker.id)) leases.drop(worker)
        else worker.endTake(taken, 'saved')
      }
    } catch (error) {
      onError(error)
      for (const [worker, taken] of read) worker.endTake(taken, 'failed')
    }
  }

  function requestSave(urgency: 'now' | 'soon'): void {
    if (isSaveQueued) return
    if (urgency === 'now') void flushSaves()
    else saveTimer ??= setTimeout(flushSaves, soonMs).unref()
  }

  /** Saves the outcomes of all workers together, one save at a time. */
  function flushSaves(): Promise<void> {
    clearTimeout(saveTimer)
    saveTimer = undefined
    isSaveQueued = true
    // Waits for the answers that arrive in this turn of the event loop: they share the save.
    saves = saves.then(() => nextTurn()).then(save)
    return saves
  }

  async function save(): Promise<void> {
    isSaveQueued = false
    const unsaved = new Map<Worker, Saved>()
    for (const worker of leases.list()) {
      const saved = worker.takeUnsaved()
      if (saved !== undefined) unsaved.set(worker, saved)
    }
    if (unsaved.size === 0) return
    try {
      const lost = new Set(await store.receivers.save(owner, [...unsaved.values()]))
      for (const worker of unsaved.keys()) {
        if (lost.has(worker.id)) leases.drop(worker)
        else worker.endSave('saved')
      }
    } catch (error) {
      for (const worker of unsaved.keys()) worker.endSave('failed')
      saveTimer ??= setTimeout(flushSaves, retryMs).unref()
      onError(error)
    }
  }

  /** Watches the journal while there is a receiver to deliver to. */
  function watchAndPump(): void {
    if (leases.size() === 0 || isClosed) stopWatch()
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
      for (const worker of leases.list()) worker.wake()
    }, wakeMs).unref()
  }

  function pumpAll(): void {
    for (const worker of leases.list()) worker.pump()
  }

  async function haltAll(): Promise<void> {
    const late = sleep(settings.closeMs, undefined, { ref: false })
    await Promise.race([Promise.all([...leases.list()].map(({ halt }) => halt('shutdown'))), late])
  }

  async function savePositions(): Promise<void> {
    const moved = [...leases.list()].flatMap((worker) => worker.takePosition() ?? [])
    if (moved.length > 0) await store.receivers.take(owner, moved).catch(onError)
  }

  async function close(): Promise<void> {
    isClosed = true
    clearTimeout(pollTimer)
    await polling
    stopWatch()
    await haltAll()
    await feeding
    await flushSaves()
    await savePositions()
    for (const timer of [pollTimer, wakeTimer, saveTimer]) clearTimeout(timer)
    for (const worker of [...leases.list()]) leases.drop(worker)
    await store.receivers.release(owner).catch(onError)
  }

  return { close }
}
