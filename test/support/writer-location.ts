import type { Store } from '../../src/store/store.ts'

/**
 * Where a store on SQLite commits, seen by what it does: a commit in place is over when the turn of the event loop is in
 * which it began; one in a thread lets the loop go on. Stores a plant with this id.
 */
export async function findWriterLocation(store: Store, id: bigint): Promise<'in place' | 'thread'> {
  let isStored = false
  const created = store.createPlant({ id, name: 'x' }).then(() => {
    isStored = true
  })
  // Comes behind the commit in the same turn, before anything that a thread says can be heard.
  await new Promise((resolve) => setImmediate(resolve))
  const place = isStored ? 'in place' : 'thread'
  await created
  return place
}
