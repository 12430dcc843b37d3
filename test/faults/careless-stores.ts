import type { Store } from '../../src/store/store.ts'

/** A store that keeps its word, or one that breaks it in a way that the fault tests have to find. */
export type Carefulness = 'careful' | 'swallows failures' | 'answers early'

export function toCareless(store: Store, carefulness: Carefulness): Store {
  const isEarly = carefulness === 'answers early'
  if (carefulness === 'careful') return store
  return {
    ...store,
    async createPlant(plant) {
      const created = store.createPlant(plant).catch(() => 1n)
      return isEarly ? 1n : created
    },
  }
}
