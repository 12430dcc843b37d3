import type { Config } from '../../config.ts'
import { openStore } from '../../store/open.ts'
import { toName } from '../stores/location.ts'
import { type OnConflictFlag, type Target, toOutcome } from './target.ts'

/** The store of the configuration as the target of an import. */
export async function openStoreTarget(config: Config, onConflict: OnConflictFlag): Promise<Target> {
  const store = await openStore(config.storeLocation)
  return {
    name: toName(config.storeLocation),
    async put(plants) {
      if (plants.length === 0) return []
      const rule = onConflict === 'replace' ? 'replace' : 'keep'
      const outcomes = await store.importPlants(plants, rule)
      return outcomes.map((outcome) => toOutcome(outcome, onConflict))
    },
    close: () => store.close(),
  }
}
