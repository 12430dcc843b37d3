import { type Position, toCursor, toPosition } from './position.ts'
import type { JournalEvent, JournalPage } from './row.ts'

/** The change at a position; undefined if there is none or it has been trimmed. */
export async function findEvent(
  store: {
    readJournal(after: Position, limit: number): Promise<JournalPage | 'gone' | 'off'>
  },
  position: Position,
): Promise<JournalEvent | undefined> {
  const cursor = toCursor(position)
  if (cursor === undefined || cursor.index === 0) return undefined
  const page = await store.readJournal(toPosition({ ...cursor, index: cursor.index - 1 }), 1)
  if (typeof page === 'string') return undefined
  const [event] = page.events
  return event?.position === position ? event : undefined
}
