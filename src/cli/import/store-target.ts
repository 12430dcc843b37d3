import type { Config } from '../../config.ts'
import type { ConflictRule } from '../../contract/parameters.ts'
import { openStore } from '../../store/open.ts'
import { toOutcome } from '../../transfer/outcome.ts'
import { toName } from '../stores/location.ts'
import type { Target } from './target.ts'

/** The store of the configuration as the target of an import. */
export async function openStoreTarget(config: Config, onConflict: ConflictRule): Promise<Target> {
  const store = await openStore(config.storeLocation)
  return {
    name: toName(config.storeLocation),
    async put(plants) {
      const rule = onConflict === 'replace' ? 'replace' : 'keep'
      const outcomes = await store.importPlants(plants, rule)
      return outcomes.map((outcome) => toOutcome(outcome, onConflict))
    },
    close: () => store.close(),
  }
}
