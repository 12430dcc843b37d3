import { PlantStoreError } from '../../../client/plant-store-error.ts'
import type { Change } from './list.ts'
import { isNumber, isTokenRefused, type Session } from './token-session.ts'

export interface LiveParts {
  readonly session: Session
  /** How far the changes were shown; no position if the list has to be read first. */
  readonly place: { position: string | undefined }
  readonly signal: AbortSignal
  /** Changes as they come, a few times a second at most. */
  onChanges(changes: readonly Change[]): void
  /** The list has to be read again: there was no position, or too much has changed. */
  onGap(): void
  onRefused(error: unknown): void
  /** Nothing can be followed: the service keeps no journal, or the token may not read it. */
  onOff(): void
}

/** How long changes are collected before they are shown. */
const collectMs = 100
/** More changes than this at once are not shown one by one. */
const maxCollected = 2_000
const againMs = 2_000

/** Follows the changes of others until the signal aborts. */
export async function followChanges(parts: LiveParts): Promise<void> {
  const { signal, place } = parts
  while (!signal.aborted) {
    try {
      await collectChanges(parts)
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof PlantStoreError)) throw error
      if (isTokenRefused(error)) return parts.onRefused(error)
      if (isNumber(error, 40300) || isNumber(error, 40400)) return parts.onOff()
      if (isNumber(error, 41000)) place.position = undefined
      await new Promise((resolve) => setTimeout(resolve, againMs))
    }
  }
}

async function collectChanges(parts: LiveParts): Promise<void> {
  const { session, place, signal, onChanges, onGap } = parts
  if (place.position === undefined) {
    place.position = await session.client.position({ signal })
    onGap()
  }
  let last = place.position
  let collected: Change[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  const show = () => {
    timer = undefined
    place.position = last
    const changes = collected
    collected = []
    if (changes.length > maxCollected) onGap()
    else onChanges(changes)
  }
  try {
    for await (const { position, type, plant } of session.client.events({ after: last, signal })) {
      last = position
      if (collected.length <= maxCollected) collected.push({ type, plant })
      timer ??= setTimeout(show, collectMs)
    }
  } finally {
    clearTimeout(timer)
  }
}
