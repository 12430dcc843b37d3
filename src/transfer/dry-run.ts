import type { ConflictRule } from '../contract/parameters.ts'
import { openScratchStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { type Put, putInto } from './import-entries.ts'

/** How many plants are looked up at a time: the store serves others meanwhile. */
const lookUps = 128

interface DryRun {
  readonly put: Put
  close(): Promise<void>
}

/**
 * Finds out what an import would do. A temporary store gets what the store has of the plants in
 * question, and then the import, so that lines with the same id meet as they would in the store,
 * which is only read. Without a store, there are no plants yet.
 */
export async function openDryRun(
  store: Pick<Store, 'getPlant'> | undefined,
  rule: ConflictRule,
): Promise<DryRun> {
  const scratch = await openScratchStore()
  const put = putInto(scratch, rule)
  return {
    async put(plants) {
      for (let first = 0; store !== undefined && first < plants.length; first += lookUps) {
        const asked = plants.slice(first, first + lookUps)
        const found = (await Promise.all(asked.map(({ id }) => store.getPlant(id)))).filter(
          (plant) => plant !== undefined,
        )
        // What an earlier line has replaced stays replaced.
        if (found.length > 0) await scratch.importPlants(found, 'keep')
      }
      return put(plants)
    },
    close: () => scratch.close(),
  }
}
