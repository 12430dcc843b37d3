import type { Times } from '../store/receivers.ts'

/** The outcome of an attempt to reach a receiver. */
export interface Outcome {
  /** The status of the answer; undefined if there was none. */
  readonly status: number | undefined
  /** Why it failed, for people. It never repeats the URL or what the receiver wrote. */
  readonly error: string | undefined
  /** How long the receiver asks us to wait (`Retry-After`). */
  readonly retryAfterMs: number
}

/** When to retry, and when to stop. */
export interface RetryPolicy {
  readonly retryDelaysMs: readonly number[]
  /** A receiver that fails for this long without a success is paused. */
  readonly patienceMs: number
}

const minute = 60
const hour = 60 * minute
const delays = [1, 5, 30, 2 * minute, 10 * minute, 30 * minute, hour, 2 * hour, 4 * hour, 8 * hour]

/** The pauses between attempts. A change that fails after the last one is kept as a failure. */
export const defaultRetryDelaysMs: readonly number[] = delays.map((seconds) => seconds * 1_000)

/** The longest pause that a receiver can ask for. */
export const maxRetryAfterMs = 8 * hour * 1_000
const jitter = 0.2

/**
 * The pause after this many failed attempts; undefined after the last one. Jitter spreads out the
 * retries of receivers that failed together.
 */
export function toRetryDelayMs(
  attempts: number,
  retryAfterMs: number,
  delaysMs: readonly number[],
): number | undefined {
  const delayMs = delaysMs[attempts - 1]
  if (delayMs === undefined) return undefined
  const spreadMs = delayMs * (1 + jitter * (2 * Math.random() - 1))
  return Math.max(spreadMs, retryAfterMs)
}

/** The pause that `Retry-After` asks for, in seconds or as a date; 0 if it is neither. */
export function toRetryAfterMs(value: string | undefined, now: number): number {
  if (value === undefined) return 0
  const pauseMs = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - now
  return Number.isNaN(pauseMs) ? 0 : Math.min(Math.max(pauseMs, 0), maxRetryAfterMs)
}

/** What follows from an attempt, for the delivery and for the receiver. */
export interface Verdict {
  /** "retry" after the delay; "refused" waits until the operator resumes the receiver. */
  readonly result: 'done' | 'retry' | 'failed' | 'refused'
  readonly delayMs: number
  readonly times: Times
  /** Why the receiver is paused, if it is. */
  readonly pause: string | undefined
}

/** Judges an attempt. `failedBefore` counts the attempts that failed before it. */
export function judge(
  { status, error, retryAfterMs }: Outcome,
  failedBefore: number,
  times: Times,
  { patienceMs, retryDelaysMs }: RetryPolicy,
): Verdict {
  const now = Date.now()
  if (error === undefined) {
    const succeeded = { ...times, lastSuccessAt: now, failingSince: undefined }
    return { result: 'done', delayMs: 0, times: succeeded, pause: undefined }
  }
  const { failingSince = now } = times
  const failed = { ...times, lastFailureAt: now, lastFailure: error, failingSince }
  if (status === 410) {
    const pause = 'the receiver answered 410 (gone)'
    return { result: 'refused', delayMs: 0, times: failed, pause }
  }
  const delayMs = toRetryDelayMs(failedBefore + 1, retryAfterMs, retryDelaysMs)
  const isTooLong = now - failingSince >= patienceMs
  return {
    result: delayMs === undefined ? 'failed' : 'retry',
    delayMs: delayMs ?? 0,
    times: failed,
    pause: isTooLong ? `every attempt has failed for ${toDays(patienceMs)} days` : undefined,
  }
}

function toDays(ms: number): number {
  return Math.round(ms / (24 * 60 * 60 * 1000))
}
