import { defaultRetryDelaysMs, type RetryPolicy } from './schedule.ts'

/** The times and bounds of the sender. They are a parameter, so that tests can shorten them. */
export interface SenderSettings extends RetryPolicy {
  /** How long a receiver may take to answer. */
  readonly timeoutMs: number
  /** How long a lease is valid, and how often it is renewed. */
  readonly leaseMs: number
  readonly renewMs: number
  /** How often the store is asked whether an operator has changed a receiver. */
  readonly pollMs: number
  /** How long a shutdown waits for requests in flight. */
  readonly closeMs: number
  /** How many deliveries wait in memory: for a receiver, and for all receivers together. */
  readonly keptDeliveries: number
  readonly keptInAll: number
}

export const defaultSettings: SenderSettings = {
  timeoutMs: 10_000,
  retryDelaysMs: defaultRetryDelaysMs,
  patienceMs: 3 * 24 * 60 * 60 * 1000,
  leaseMs: 5_000,
  renewMs: 1_500,
  pollMs: 400,
  closeMs: 3_000,
  keptDeliveries: 1_000,
  keptInAll: 16_000,
}

/** How many deliveries to one receiver may be in flight, or ended and not yet saved. */
export const maxInFlight = 16
/** The pause after the store has failed. */
export const retryMs = 250
