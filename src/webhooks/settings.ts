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
  /** The journal is not read while this many deliveries to a receiver wait, or this many bytes. */
  readonly keptDeliveries: number
  readonly keptBytes: number
  /** The bytes in flight to all receivers, and the bytes of bodies that wait in memory. */
  readonly inFlightBytes: number
  readonly waitingBytes: number
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

/** How many deliveries to one receiver may be in flight, or ended and not yet saved. */
export const maxInFlight = 16
/** The pause after the store has failed. */
export const retryMs = 250
