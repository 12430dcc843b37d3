import type { Store } from '../../src/store/store.ts'

/**
 * Finds out where a store on SQLite commits, by what it does: a commit in place is done in the turn
 * of the event loop in which it begins; a commit in a thread lets the loop go on. Stores a plant
 * with this id.
 */
export async function findWriterLocation(store: Store, id: bigint): Promise<'in place' | 'thread'> {
  let isStored = false
  const created = (async () => {
    await store.createPlant({ id, name: 'x' })
    isStored = true
  })()
  // Runs after the commit, in the same turn, before the answer of a thread can arrive.
  await new Promise((resolve) => setImmediate(resolve))
  const location = isStored ? 'in place' : 'thread'
  await created
  return location
}
