import { Failure } from '../../../src/contract/errors.ts'
import type { Store } from '../../../src/store/store.ts'

/** A store that keeps its promises, or breaks one in a way that the fault tests must find. */
export type Carefulness =
  | 'careful'
  | 'swallows failures'
  | 'answers early'
  | 'refuses what it stored'

export function toCareless(store: Store, carefulness: Carefulness): Store {
  const createPlant: Store['createPlant'] = async (...create) => store.createPlant(...create)
  const creates: Record<Carefulness, typeof createPlant> = {
    careful: createPlant,
    'swallows failures': (plant) => createPlant(plant).catch(() => 1n),
    async 'answers early'(plant) {
      createPlant(plant).catch(() => {})
      return 1n
    },
    async 'refuses what it stored'(plant) {
      await createPlant(plant)
      throw new Failure(50301, 'Nothing was stored.')
    },
  }
  return { ...store, createPlant: creates[carefulness] }
}
