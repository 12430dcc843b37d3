import { toPlace, toPosition } from './positions.ts'
import type { JournalEvent, Store } from './store.ts'

/** The change at a position; undefined where there is none, or it is no longer kept. */
export async function findEvent(
  store: Pick<Store, 'readJournal'>,
  position: string,
): Promise<JournalEvent | undefined> {
  const place = toPlace(position)
  if (place === undefined || place.done === 0) return undefined
  const page = await store.readJournal(toPosition({ ...place, done: place.done - 1 }), 1)
  if (typeof page === 'string') return undefined
  const [event] = page.events
  return event?.position === position ? event : undefined
}
