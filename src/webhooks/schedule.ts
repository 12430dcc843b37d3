const secondMs = 1_000
const minuteMs = 60_000
const hourMs = 3_600_000

/** The pauses between attempts. A change that fails after the last one is kept as a failure. */
export const defaultRetryDelaysMs: readonly number[] = [
  secondMs,
  5 * secondMs,
  30 * secondMs,
  2 * minuteMs,
  10 * minuteMs,
  30 * minuteMs,
  hourMs,
  2 * hourMs,
  4 * hourMs,
  8 * hourMs,
]

/** The longest pause that a receiver can ask for. */
export const maxRetryAfterMs = 8 * hourMs
const jitter = 0.2

/**
 * The pause after this many failed attempts; undefined after the last one. Receivers that fail
 * together are not all tried again together.
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

/** The pause that `Retry-After` asks for, in seconds or as a date; 0 where it makes no sense. */
export function toRetryAfterMs(value: string | undefined, now: number): number {
  if (value === undefined) return 0
  const pauseMs = /^\d+$/.test(value) ? Number(value) * secondMs : Date.parse(value) - now
  return Number.isNaN(pauseMs) ? 0 : Math.min(Math.max(pauseMs, 0), maxRetryAfterMs)
}
