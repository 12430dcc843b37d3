import { defaultRetryDelaysMs } from './schedule.ts'

/** The times and bounds of the sender. They are passed on, so that a test can shorten them. */
export interface SenderSettings {
  /** How long a receiver may take to answer. */
  readonly timeoutMs: number
  readonly retryDelaysMs: readonly number[]
  /** A receiver that fails for this long without a success is paused. */
  readonly patienceMs: number
  /** How long a lease is valid, and how often it is renewed. */
  readonly leaseMs: number
  readonly renewMs: number
  /** How often the store is asked whether an operator has changed a receiver. */
  readonly lookMs: number
  /** How long a shutdown waits for requests under way. */
  readonly closeMs: number
  /** How many changes that wait or fail are kept for a receiver before it holds up the rest. */
  readonly keptDeliveries: number
  /** Certificates to trust instead of the usual ones. */
  readonly authorities?: readonly string[]
}

export const defaultSettings: SenderSettings = {
  timeoutMs: 10_000,
  retryDelaysMs: defaultRetryDelaysMs,
  patienceMs: 3 * 24 * 60 * 60 * 1000,
  leaseMs: 5_000,
  renewMs: 1_500,
  lookMs: 400,
  closeMs: 3_000,
  keptDeliveries: 1_000,
}

/** How many requests to one receiver are on their way or not yet saved as done. */
export const maxOnTheirWay = 16
