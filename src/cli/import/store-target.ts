import type { Config } from '../../config.ts'
import type { ConflictRule } from '../../contract/parameters.ts'
import { openStore } from '../../store/open.ts'
import { toOnConflict, toOutcome } from '../../transfer/outcome.ts'
import { toName } from '../stores.ts'
import type { Target } from './target.ts'

/** The store of the configuration as the target of an import. */
export async function openStoreTarget(config: Config, rule: ConflictRule): Promise<Target> {
  const store = await openStore(config.storeLocation)
  return {
    name: toName(config.storeLocation),
    bounds: { entries: 2_000, characters: 256 * 1024, inFlight: 2 },
    async put(plants) {
      const outcomes = await store.importPlants(plants, toOnConflict(rule))
      return outcomes.map((outcome) => toOutcome(outcome, rule))
    },
    close: () => store.close(),
  }
}
