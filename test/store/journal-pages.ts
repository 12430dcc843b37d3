import assert from 'node:assert/strict'
import {
  type JournalEvent,
  type JournalPage,
  type Position,
  type Store,
  toPlantId,
} from '../../src/store/store.ts'

export async function readPage(
  store: Store,
  after: Position | 'oldest' = 'oldest',
  limit = 1_000,
): Promise<JournalPage> {
  const page = await store.readJournal(after, limit)
  assert.ok(typeof page === 'object', `the journal answers "${page}"`)
  return page
}

/** The ids of the plants of a page. */
export async function readIds(store: Store, after: Position | 'oldest'): Promise<bigint[]> {
  return (await readPage(store, after)).events.map(toPlantId)
}

/** Every change, read in pages of this size. */
export async function readAll(
  store: Store,
  limit: number,
  after: Position | 'oldest' = 'oldest',
): Promise<JournalEvent[]> {
  const events: JournalEvent[] = []
  for (let from = after; ; ) {
    const page = await readPage(store, from, limit)
    if (page.events.length === 0) return events
    assert.ok(page.events.length <= limit)
    events.push(...page.events)
    from = page.end
  }
}
