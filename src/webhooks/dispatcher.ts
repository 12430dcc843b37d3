import type { Claim, Delivery, Receiver, SavedProgress, Secrets } from '../store/receivers.ts'
import type { Store } from '../store/store.ts'
import { openCaution } from './caution.ts'
import { deliver } from './delivery.ts'
import { buildHealth, type HealthNews } from './health.ts'
import { buildIntake, type IntakeOptions } from './intake.ts'
import { type Job, noteFailure } from './job.ts'
import { buildLedger } from './ledger.ts'
import { maxOnTheirWay, type SenderSettings } from './settings.ts'
import type { Outcome, Transport } from './transport.ts'
import { judge } from './verdict.ts'
import { openWorkload } from './workload.ts'

/** Delivers to one receiver while this process holds its lease. */
export interface Dispatcher extends Claim {
  /** Looks again for changes in the journal. */
  wake(): void
  /** Sends what may be sent now. */
  pump(): void
  /** Takes over what an operator has changed: secrets, and changes to send again. */
  update(secrets: Secrets, waiting: readonly Delivery[]): void
  /** The state to save; undefined if there is none, or a save is under way. */
  takeUnsaved(): SavedProgress | undefined
  /** Ends the save that is under way. What could not be saved is saved again. */
  endSave(outcome: 'saved' | 'failed'): void
  /** Whether it has paused the receiver itself. */
  isPaused(): boolean
  /** Starts nothing more. Resolves when nothing is on its way. */
  halt(): Promise<void>
  /** Breaks off everything. */
  close(): void
}

export interface DispatcherOptions extends Pick<IntakeOptions, 'readPage'> {
  readonly receiver: Receiver
  readonly claim: Claim
  readonly waiting: readonly Delivery[]
  readonly transport: Transport
  readonly settings: SenderSettings
  readonly findPlant: Store['receivers']['findPlant']
  /** Whether the lease is still valid. */
  readonly isHeld: () => boolean
  /** Whether there is time for a delivery now. */
  readonly takeTurn: () => boolean
  /** Called when there is something to save. */
  readonly onUnsaved: (urgency: 'now' | 'later') => void
  readonly onFailure: (job: Job, outcome: Outcome, pause: string | undefined) => void
  readonly onHealth: (news: HealthNews, outcome: Outcome) => void
  readonly onError: (error: unknown) => void
}

/** Reading pauses while this many changes wait, or this many are in the window. */
const [maxUnsent, maxWindow] = [64, 512]
/** With this many finished beyond an open change, that one is kept beside the journal. */
const maxAhead = 128
const gapReason = 'a gap: some changes were no longer kept and have not been sent'

export function openDispatcher(options: DispatcherOptions): Dispatcher {
  const { receiver, claim, transport, settings, isHeld, readPage } = options
  const { position: _, ahead: __, ...times } = receiver.progress
  const ledger = buildLedger(times, settings.keptDeliveries)
  const work = openWorkload(ledger, pump)
  const caution = openCaution(pump)
  const health = buildHealth(times.failingSince)
  const intake = buildIntake({ receiver, readPage, isKept: work.has, onChange: work.add })
  const onIdle: (() => void)[] = []
  let { secrets } = receiver
  let onTheirWay = 0
  let hasNews = false
  let isHalted = false
  let isClosed = false
  work.addWaiting(options.waiting)

  function pump(): void {
    if (isStopped()) return
    void read()
    // Bounds the changes that a crash would send twice.
    while (onTheirWay + ledger.countSent() < maxOnTheirWay && work.hasNext() && !isStopped()) {
      if (!isHeld() || (work.isNextNew() && !caution.mayBegin()) || !options.takeTurn()) return
      void send(work.next())
    }
  }

  function isStopped(): boolean {
    return isHalted || isClosed || ledger.pause !== undefined
  }

  async function read(): Promise<void> {
    if (work.countUnsent() >= maxUnsent || intake.size() >= maxWindow) return
    try {
      const found = await intake.read()
      if (isClosed || found === 'nothing') return
      if (found === 'gap') ledger.gap = gapReason
      announce('later')
      // In another turn: pages of unwanted changes would keep the event loop for themselves.
      setImmediate(pump)
    } catch (error) {
      options.onError(error)
    }
  }

  async function send(job: Job): Promise<void> {
    job.state = 'sending'
    onTheirWay++
    try {
      const plant = job.plant ?? (await options.findPlant(claim.id, job.position))
      const message = plant && { id: job.position, event: job.type, plant }
      const outcome = message && (await deliver(transport, secrets, message, isHeld))
      if (!isClosed) settle(job, outcome)
    } catch (error) {
      options.onError(error)
      if (!isClosed) work.putBack(job)
    }
    onTheirWay--
    if (onTheirWay === 0) for (const resolve of onIdle.splice(0)) resolve()
    pump()
  }

  /** Decides what becomes of a job. Without an outcome, an operator has removed it meanwhile. */
  function settle(job: Job, outcome: Outcome | undefined): void {
    if (outcome === undefined) finish(job, 'done')
    // A request that was broken off with the lease says nothing about the receiver.
    else if (outcome.error !== undefined && !isHeld()) work.putBack(job)
    else settleAttempt(job, outcome)
  }

  function settleAttempt(job: Job, outcome: Outcome): void {
    const { fate, delayMs, times, pause } = judge(outcome, job.attempts, ledger.times, settings)
    ledger.times = times
    caution.note(fate === 'done' ? 'success' : 'failure')
    ledger.pause ??= pause
    options.onHealth(health.note(job.position, fate), outcome)
    if (fate === 'again' || fate === 'failed') noteFailure(job, outcome, delayMs)
    if (fate !== 'refused') finish(job, fate === 'again' ? 'waiting' : fate)
    else {
      work.putBack(job)
      announce('now')
    }
    if (outcome.error !== undefined) options.onFailure(job, outcome, pause)
  }

  function finish(job: Job, state: 'done' | 'failed' | 'waiting'): void {
    job.state = state
    ledger.addSent(job)
    if (state !== 'done') ledger.keep(job)
    else if (job.entry !== undefined) job.entry.isOpen = false
    announce('now')
  }

  function announce(urgency: 'now' | 'later'): void {
    hasNews = true
    options.onUnsaved(urgency)
  }

  /** A change that stays open must not hold up the position for ever. */
  function findProgress() {
    const progress = intake.progress()
    if (progress.firstOpen === undefined || progress.ahead.length <= maxAhead) return progress
    work.keep(progress.firstOpen)
    return intake.progress()
  }

  return {
    ...claim,
    pump,
    wake() {
      intake.wake()
      pump()
    },
    update(changed, waiting) {
      secrets = changed
      work.addWaiting(waiting)
      pump()
    },
    takeUnsaved() {
      if (!hasNews || isClosed) return undefined
      const saved = ledger.take(findProgress())
      if (saved === undefined) return undefined
      hasNews = false
      return { ...claim, ...saved }
    },
    isPaused: () => ledger.pause !== undefined,
    endSave(outcome) {
      work.endJobs(ledger.end(outcome))
      hasNews ||= outcome === 'failed' || ledger.hasKept()
      pump()
    },
    halt() {
      isHalted = true
      return onTheirWay === 0 ? Promise.resolve() : new Promise((resolve) => onIdle.push(resolve))
    },
    close() {
      isClosed = true
      caution.close()
      work.close()
      transport.close()
    },
  }
}
