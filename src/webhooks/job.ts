import type { StoredPlant } from '../contract/shapes.ts'
import type { Delivery, KeptDelivery } from '../store/receivers.ts'
import { type JournalEvent, toPlant } from '../store/store.ts'
import { maxRetryAfterMs } from './schedule.ts'
import type { Outcome } from './transport.ts'
import type { Entry } from './window.ts'

/** A change on its way to one receiver. */
export interface Job extends Pick<Delivery, 'position' | 'type' | 'at' | 'plantId'> {
  /** Undefined where the store holds it. */
  plant: StoredPlant | undefined
  attempts: number
  /** When it may be sent, on the clock of `performance.now` and on that of the calendar. */
  readyAt: number
  dueAt: number
  lastStatus: number | undefined
  lastError: string | undefined
  state: 'waiting' | 'sending' | 'done' | 'failed'
  /** Whether the store keeps it beside the journal, or is about to. */
  isKept: boolean
  /** Whether it waits for its first attempt, and only in memory. */
  isUnsent: boolean
  /** Its place in the window; undefined where the store kept it before. */
  readonly entry: Entry | undefined
}

export function toJob(event: JournalEvent, entry: Entry): Job {
  const { position, type, at } = event
  const plant = toPlant(event)
  return {
    position,
    type,
    at,
    plantId: plant.id,
    plant,
    attempts: 0,
    readyAt: 0,
    dueAt: at,
    lastStatus: undefined,
    lastError: undefined,
    state: 'waiting',
    isKept: false,
    isUnsent: true,
    entry,
  }
}

/** The job of a delivery that the store keeps. A clock that was set back does not delay it more. */
export function toKeptJob(delivery: Delivery, now: number): Job {
  const { dueAt = 0 } = delivery
  const delayMs = Math.min(Math.max(dueAt - now, 0), maxRetryAfterMs * 1.2)
  return {
    ...delivery,
    plant: undefined,
    readyAt: performance.now() + delayMs,
    dueAt,
    state: 'waiting',
    isKept: true,
    isUnsent: false,
    entry: undefined,
  }
}

export function toKeptDelivery(job: Job): KeptDelivery {
  const { position, type, at, plantId, attempts, lastStatus, lastError, plant } = job
  const dueAt = job.state === 'failed' ? undefined : Math.round(job.dueAt)
  return { position, type, at, plantId, attempts, dueAt, lastStatus, lastError, plant }
}

/** Notes a failed attempt, and when the next one is due. */
export function noteFailure(job: Job, { status, error }: Outcome, delayMs: number): void {
  job.attempts++
  job.lastStatus = status
  job.lastError = error
  job.dueAt = Date.now() + delayMs
  job.readyAt = performance.now() + delayMs
}
