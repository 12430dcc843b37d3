import { defaultRetryDelaysMs, type RetryPolicy } from './schedule.ts'

/** The times and bounds of the sender. They are passed on, so that a test can shorten them. */
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
  /** The journal is not read while this many changes of a receiver wait, or this many bytes. */
  readonly keptDeliveries: number
  readonly keptBytes: number
  /** The bytes in flight over all receivers, and those that wait for a receiver in memory. */
  readonly inFlightBytes: number
  readonly waitingBytes: number
  /** Certificates to trust instead of the usual ones. */
  readonly authorities?: readonly string[]
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
  keptBytes: 4 * 1024 * 1024,
  inFlightBytes: 64 * 1024 * 1024,
  waitingBytes: 32 * 1024 * 1024,
}

/** How many deliveries to one receiver are in flight, or ended and not saved. */
export const maxInFlight = 16
