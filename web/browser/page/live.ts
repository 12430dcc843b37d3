import { PlantStoreError } from '../../../client/index.ts'
import type { Change } from './changes.ts'
import { isNumber, isTokenRefused } from './sentences.ts'
import type { Session } from './session.ts'

export interface LiveParts {
  readonly session: Session
  readonly signal: AbortSignal
  /** Changes as they come, a few times a second at most. */
  onChanges(changes: readonly Change[]): void
  /** Too many changes to follow, or a gap: the list has to be read again. */
  onGap(): void
  onRefused(error: unknown): void
  /** The service does not keep a journal, so nothing can be followed. */
  onOff(): void
}

/** How long changes are collected before they are shown. */
const collectMs = 100
/** More changes than this at once are not shown one by one. */
const maxCollected = 2_000
const againMs = 2_000

/** Follows the changes of others until the signal aborts. */
export async function followChanges(parts: LiveParts): Promise<void> {
  const { signal } = parts
  while (!signal.aborted) {
    try {
      await collectChanges(parts)
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof PlantStoreError)) throw error
      if (isTokenRefused(error) || isNumber(error, 40300)) return parts.onRefused(error)
      if (isNumber(error, 40400)) return parts.onOff()
      await new Promise((resolve) => setTimeout(resolve, againMs))
      // The position is no longer kept, or nobody knows what was missed.
      if (!signal.aborted) parts.onGap()
    }
  }
}

async function collectChanges({ session, signal, onChanges, onGap }: LiveParts): Promise<void> {
  let collected: Change[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  const show = () => {
    timer = undefined
    const changes = collected
    collected = []
    if (changes.length > maxCollected) onGap()
    else onChanges(changes)
  }
  try {
    for await (const { type, plant } of session.client.events({ after: 'latest', signal })) {
      if (collected.length <= maxCollected) collected.push({ type, plant })
      timer ??= setTimeout(show, collectMs)
    }
  } finally {
    clearTimeout(timer)
  }
}
