import type { Receiver } from '../../store/receivers.ts'
import type { Store } from '../../store/store.ts'

/** How many changes a receiver has yet to get, and how old the oldest of them is. */
export interface Behind {
  readonly changes: number
  readonly seconds: number
}

/** Counting stops here: the journal may hold millions. */
export const maxCounted = 100_000
const pageEvents = 1_000

/** Counts what a receiver has yet to get, up to a bound. */
export async function countBehind(
  store: Pick<Store, 'readJournal' | 'receivers'>,
  { id, types, progress }: Receiver,
  now: number,
): Promise<Behind> {
  const backlog = (await store.receivers.listBacklogs()).find((one) => one.id === id)
  const wanted = new Set<string>(types)
  const known = new Set(progress.ahead)
  let changes = backlog?.changes ?? 0
  let oldestAt = Math.min(now, backlog?.at ?? now)
  let after: string = progress.position
  while (changes < maxCounted) {
    const page = await store.readJournal(after, pageEvents)
    if (page === 'off') break
    if (page === 'gone') {
      if (after === 'oldest') break
      after = 'oldest'
      continue
    }
    const missing = page.events.filter(
      ({ type, position }) => wanted.has(type) && !known.has(position),
    )
    oldestAt = Math.min(oldestAt, missing[0]?.at ?? now)
    changes += missing.length
    if (page.events.length === 0) break
    after = page.end
  }
  const seconds = changes === 0 ? 0 : Math.max(0, Math.round((now - oldestAt) / 1000))
  return { changes: Math.min(changes, maxCounted), seconds }
}
