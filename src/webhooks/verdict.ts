import type { Ledger } from './ledger.ts'
import { toRetryDelayMs } from './schedule.ts'
import type { SenderSettings } from './settings.ts'
import type { Outcome } from './transport.ts'

/** The consequences of an attempt for the job and for the receiver. */
export interface Verdict {
  /** "again" after the pause; "refused" without one, once the receiver is active again. */
  readonly fate: 'done' | 'again' | 'failed' | 'refused'
  readonly delayMs: number
  readonly times: Ledger['times']
  /** Why the receiver is paused, if it is. */
  readonly pause: string | undefined
}

/** Judges an attempt, after this many that failed before it. */
export function judge(
  { status, error, retryAfterMs }: Outcome,
  failedBefore: number,
  times: Ledger['times'],
  { patienceMs, retryDelaysMs }: SenderSettings,
): Verdict {
  const now = Date.now()
  if (error === undefined) {
    const succeeded = { ...times, lastSuccessAt: now, failingSince: undefined }
    return { fate: 'done', delayMs: 0, times: succeeded, pause: undefined }
  }
  const { failingSince = now } = times
  const failed = { ...times, lastFailureAt: now, lastFailure: error, failingSince }
  if (status === 410) {
    const pause = 'the receiver answered 410 (gone)'
    return { fate: 'refused', delayMs: 0, times: failed, pause }
  }
  const delayMs = toRetryDelayMs(failedBefore + 1, retryAfterMs, retryDelaysMs)
  const isTooLong = now - failingSince >= patienceMs
  return {
    fate: delayMs === undefined ? 'failed' : 'again',
    delayMs: delayMs ?? 0,
    times: failed,
    pause: isTooLong ? `every attempt has failed for ${toDays(patienceMs)} days` : undefined,
  }
}

function toDays(ms: number): number {
  return Math.round(ms / (24 * 60 * 60 * 1000))
}
