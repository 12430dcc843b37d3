import type { Store } from '../../../src/store/store.ts'

/** How many plants a store holds at this moment. */
export async function countPlants(store: Store): Promise<number> {
  const snapshot = await store.openSnapshot()
  try {
    return await snapshot.countPlants(undefined)
  } finally {
    await snapshot.close()
  }
}
