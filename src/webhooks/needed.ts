import { findEvent } from '../journal/find-event.ts'
import type { Receiver } from '../store/receivers.ts'
import type { Store } from '../store/store.ts'

/** How much longer than usual the journal keeps what a receiver has yet to get. */
const extraMs = 3 * 24 * 60 * 60 * 1000

/** The time before which the journal may be trimmed, for the receivers that are active. */
export async function toTrimTime(store: Store, keepMs: number, now: number): Promise<number> {
  const usual = now - keepMs
  const active = (await store.receivers.list()).filter(({ state }) => state === 'active')
  const needed = await Promise.all(active.map((receiver) => findNeededAt(store, receiver)))
  return Math.max(Math.min(usual, ...needed), usual - extraMs)
}

/** When the oldest change was made that a receiver needs: its position must be kept as well. */
async function findNeededAt(store: Store, { progress }: Receiver): Promise<number> {
  const page = await store.readJournal(progress.position, 1)
  const next = typeof page === 'string' ? undefined : page.events[0]
  if (next === undefined) return Infinity
  const last = await findEvent(store, progress.position)
  return Math.min(next.at, last?.at ?? next.at)
}
