import type { Receiver } from '../../store/receivers.ts'
import { toTime } from '../tokens/view.ts'
import type { Behind } from './behind.ts'

/** A receiver as `--json` shows it: never its secrets. */
export function toView(receiver: Receiver, behind: Behind) {
  const { id, url, types, state, reason = null, createdAt, progress } = receiver
  return {
    id,
    url,
    types,
    state,
    reason,
    position: progress.position,
    behind,
    createdAt: toTime(createdAt),
    lastSuccessAt: toTime(progress.lastSuccessAt),
    lastFailureAt: toTime(progress.lastFailureAt),
    lastFailure: progress.lastFailure ?? null,
  }
}

export type ReceiverView = ReturnType<typeof toView>
