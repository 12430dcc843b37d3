import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Receiver, ReceiverStore, Secrets, Taken, Times } from '../store/receivers.ts'
import { type FeedOptions, openFeed } from './feed.ts'
import { openQueue, type Queue, type Row } from './queue.ts'
import { deliver } from './receiver.ts'
import { judge, type Outcome, type RetryPolicy, type Verdict } from './schedule.ts'
import type { Transport } from './transport.ts'

export type Worker = ReturnType<typeof openWorker>

export interface WorkerOptions extends Omit<FeedOptions, 'store' | 'queue' | 'inTurn'> {
  readonly transport: Transport
  readonly settings: RetryPolicy
  readonly store: Pick<ReceiverStore, 'listDeliveries' | 'take' | 'save'>
  readonly owner: string
  readonly logger: Pick<Logger, 'debug' | 'info' | 'warn'>
  /** Whether the lease is still valid. */
  readonly isHeld: () => boolean
  /** Called if the store says that it is not. */
  readonly onLost: () => void
  /** Called if the store refuses a take: the lease is lost, or the position is another one. */
  readonly onRefused: () => void
  /** Runs a step after those of other workers: each may read a page of 1 MiB. */
  readonly inLine: (step: () => Promise<void>) => Promise<void>
  readonly onError: (error: unknown) => void
}

/** How many deliveries to one receiver may be in flight, or ended and not yet saved. */
const maxInFlight = 16
/** The pause after the store has failed. */
const retryMs = 250
const noFailures = { failingSince: undefined }

/** Delivers to one receiver while this process holds its lease. */
export function openWorker(options: WorkerOptions) {
  const { receiver, claim, owner, transport, settings, store, isHeld, onError } = options
  const queue = openQueue(pump)
  const feed = openFeed({ ...options, queue, inTurn })
  const report = buildReport(receiver, queue, options.logger)
  const onIdle: (() => void)[] = []
  let { secrets } = receiver
  let times: Times = receiver.progress
  let inFlight = 0
  let unsaved: Row[] = []
  let steps = Promise.resolve()
  let filling: Promise<void> | undefined
  let saving: Promise<void> | undefined
  let isPaused = false
  let unsavedPause: string | undefined
  let isHalted = false
  let isClosed = false

  /** Sends what may be sent now, and reads and takes more if there is room. */
  function pump(): void {
    if (isStopped()) return
    // Bounds the deliveries that a crash would repeat.
    while (queue.countBusy() < maxInFlight && queue.peek() !== undefined && isHeld()) {
      void send(queue.next())
    }
    if (feed.hasDemand()) filling ??= fill()
  }

  function isStopped(): boolean {
    return isHalted || isClosed || isPaused
  }

  /** Loads and saves run one at a time: deliveries that are read during a save are out of date. */
  function inTurn(step: () => Promise<void>): Promise<void> {
    const done = steps.then(step)
    steps = done.catch(() => {})
    return done
  }

  /** Reads deliveries of the store, or pages of the journal, and takes what is wanted of them. */
  async function fill(): Promise<void> {
    try {
      while (feed.hasDemand() && !isStopped()) {
        await options.inLine(async () => {
          const taken = await feed.read()
          pump()
          if (taken !== undefined && !isStopped()) await take(taken)
        })
      }
    } catch (error) {
      onError(error)
      feed.wake()
      setTimeout(pump, retryMs).unref()
    }
    filling = undefined
  }

  async function take(taken: Taken): Promise<void> {
    const isTaken = await store.take(owner, taken)
    if (isClosed) return
    if (!isTaken) {
      options.onRefused()
      return
    }
    feed.endTake(taken)
    pump()
  }

  async function send(row: Row): Promise<void> {
    inFlight++
    const message = { id: row.position, event: row.type, body: row.body }
    const outcome = await deliver(transport, secrets, message, isHeld)
    if (!isClosed) settle(row, outcome)
    inFlight--
    if (inFlight === 0) for (const resolve of onIdle.splice(0)) resolve()
    pump()
  }

  function settle(row: Row, outcome: Outcome): void {
    // A request that was aborted because the lease was lost says nothing about the receiver.
    if (outcome.error !== undefined && !isHeld()) {
      queue.putBack(row)
      return
    }
    const verdict = judge(outcome, row.attempts, times, settings)
    times = verdict.times
    if (verdict.pause !== undefined && !isPaused) {
      isPaused = true
      unsavedPause = verdict.pause
    }
    if (verdict.result === 'refused') queue.putBack(row)
    else {
      noteAttempt(row, outcome, verdict)
      unsaved.push(row)
    }
    report(row, outcome, verdict)
    void flush()
  }

  async function flush(): Promise<void> {
    if (hasUnsaved()) saving ??= saveAll()
    await saving
  }

  function hasUnsaved(): boolean {
    return !isClosed && (unsaved.length > 0 || unsavedPause !== undefined)
  }

  /** Saves outcomes until there are none. Those that arrive during a save share the next one. */
  async function saveAll(): Promise<void> {
    let isSaved = true
    while (isSaved && hasUnsaved()) {
      // Waits for the answers that arrive in this turn of the event loop.
      await nextTurn()
      await inTurn(async () => {
        isSaved = await save()
      })
    }
    saving = undefined
    if (!isSaved) setTimeout(flush, retryMs).unref()
  }

  async function save(): Promise<boolean> {
    const [rows, pause] = [unsaved, unsavedPause]
    unsaved = []
    unsavedPause = undefined
    const done = rows.filter(({ isDone }) => isDone).map(({ position }) => position)
    const failed = rows.filter(({ isDone }) => !isDone)
    // An operator may have resumed the receiver since, which ended its time of failing.
    const { failingSince } = isPaused && pause === undefined ? noFailures : times
    const saved = { ...claim, times: { ...times, failingSince }, done, failed, pause }
    try {
      if (!(await store.save(owner, saved))) options.onLost()
    } catch (error) {
      onError(error)
      unsaved = [...rows, ...unsaved]
      unsavedPause ??= pause
      return false
    }
    if (isClosed) return true
    for (const row of rows) {
      if (row.isDone || row.dueAt === undefined) queue.remove(row)
      else queue.putBack(row)
    }
    pump()
    return true
  }

  return {
    ...claim,
    pump,
    /** The journal may have more. */
    wake(): void {
      feed.wake()
      pump()
    },
    /** Applies what an operator may have changed: secrets, and deliveries. */
    update(changed: Secrets): void {
      secrets = changed
      feed.reload()
      pump()
    },
    /** Whether it has paused the receiver itself. */
    isPaused: () => isPaused,
    /** Starts nothing more. Resolves when nothing is in flight. */
    halt(reason: 'paused' | 'closing'): Promise<void> {
      isHalted = true
      isPaused ||= reason === 'paused'
      return inFlight === 0 ? Promise.resolve() : new Promise((resolve) => onIdle.push(resolve))
    },
    /** Saves the outcomes and the position. */
    async finish(): Promise<void> {
      await filling
      await flush()
      const moved = feed.takePosition()
      if (moved !== undefined) await store.take(owner, moved).catch(onError)
    },
    /** Aborts everything. */
    close(): void {
      isClosed = true
      queue.close()
      transport.close()
    },
  }
}

/** Records how an attempt ended, and when the next one is due. */
function noteAttempt(row: Row, { status, error }: Outcome, { result, delayMs }: Verdict): void {
  row.isDone = result === 'done'
  if (row.isDone) return
  row.attempts++
  row.lastStatus = status
  row.lastError = error
  row.dueAt = result === 'failed' ? undefined : Math.round(Date.now() + delayMs)
  row.readyAt = performance.now() + delayMs
}

/**
 * Logs failures, and when the receiver starts to fail and works again. It works again once it takes
 * a change while no other has to be retried, so that a receiver that refuses only a few plants is
 * not reported over and over. The URL is never logged: it may hold a secret.
 */
function buildReport(
  { id: receiver, progress }: Receiver,
  queue: Queue,
  logger: WorkerOptions['logger'],
) {
  let isFailing = progress.failingSince !== undefined

  return ({ position, attempts }: Row, { status, error }: Outcome, { result, pause }: Verdict) => {
    if (result === 'done' && isFailing && !queue.hasRetries()) {
      isFailing = false
      logger.info({ receiver }, 'webhooks: the receiver works again')
    }
    if (error === undefined) return
    if ((result === 'retry' || result === 'failed') && !isFailing) {
      isFailing = true
      const words = 'webhooks: the receiver is failing; its changes are retried'
      logger.warn({ receiver, status, error }, words)
    }
    logger.debug({ receiver, position, attempts, status, error }, 'webhooks: an attempt failed')
    if (result === 'failed') {
      logger.warn({ receiver, position, error }, 'webhooks: a change was given up')
    }
    if (pause !== undefined) {
      logger.warn({ receiver, reason: pause }, 'webhooks: the receiver is paused')
    }
  }
}
