import { type Position, toPlace, toPosition } from './position.ts'
import type { JournalEvent, JournalPage } from './row.ts'

/** The change at a position; undefined where there is none, or it is no longer kept. */
export async function findEvent(
  store: {
    readJournal(after: Position, limit: number): Promise<JournalPage | 'gone' | 'off'>
  },
  position: Position,
): Promise<JournalEvent | undefined> {
  const place = toPlace(position)
  if (place === undefined || place.done === 0) return undefined
  const page = await store.readJournal(toPosition({ ...place, done: place.done - 1 }), 1)
  if (typeof page === 'string') return undefined
  const [event] = page.events
  return event?.position === position ? event : undefined
}
