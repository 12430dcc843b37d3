import { Failure } from '../../../src/contract/errors.ts'
import { randomVersion } from '../../../src/store/changes.ts'
import type { Store, VersionedPlant } from '../../../src/store/store.ts'

/** Longer than the service lives in the tests. */
const lateMs = 60_000

type Events = Exclude<Awaited<ReturnType<Store['readJournal']>>, string>['events']

const spoilPages = (spoil: (events: Events) => Events) => (store: Store) => ({
  async readJournal(...place: Parameters<Store['readJournal']>) {
    const page = await store.readJournal(...place)
    return typeof page === 'string' ? page : { ...page, events: spoil(page.events) }
  },
})

/** What a wrong store does on purpose: the methods that replace those of a right one. */
const wrongs = {
  acknowledgeBeforeCommit: (store) => ({
    async createPlant(plant) {
      setTimeout(() => store.createPlant(plant), lateMs)
      return randomVersion()
    },
  }),

  /** Loses plants when the disk is full. */
  swallowCommitErrors: (store) => ({
    createPlant: (plant) => store.createPlant(plant).catch(randomVersion),
    createPlantOnce: (plant, key) =>
      store
        .createPlantOnce(plant, key)
        .catch(() => ({ version: randomVersion(), isReplay: false })),
  }),

  /** Tells the client that nothing is stored, although it is. */
  refuseStored: (store) => ({
    async createPlant(plant) {
      await store.createPlant(plant)
      throw new Failure(50301, 'Nothing was stored.')
    },
  }),

  roundIds: (store) => ({
    createPlant: (plant) =>
      store.createPlant({ ...plant, id: BigInt.asIntN(64, BigInt(Number(plant.id))) }),
  }),

  mixContents(store) {
    let previous: VersionedPlant | undefined
    return {
      async getPlant(id) {
        const plant = await store.getPlant(id)
        const mixed = plant && previous && { ...previous, id }
        previous = plant
        return mixed ?? plant
      },
    }
  },

  forgetKeys: (store) => ({
    async createPlantOnce(plant) {
      const version = await store.createPlant(plant)
      return version === 'exists' ? version : { version, isReplay: false }
    },
  }),

  /** Repeats the first answer, but stores the plant again. */
  storeTwice: (store) => ({
    async createPlantOnce(plant, key) {
      const outcome = await store.createPlantOnce(plant, key)
      if (typeof outcome !== 'string' && outcome.isReplay) await store.createPlant(plant)
      return outcome
    },
  }),

  deleteNothing: () => ({ deletePlant: async () => 'deleted' }),

  /** A full query has one plant more than the page: the one before it is left out. */
  skipAtPageEnd: (store) => ({
    async listPlants(query) {
      const page = await store.listPlants(query)
      const isEnd = page.plants.length === query.limit
      return isEnd ? { ...page, plants: page.plants.toSpliced(-2, 1) } : page
    },
  }),

  readFromOldCache(store) {
    const cache = new Map<bigint, VersionedPlant | undefined>()
    return {
      async getPlant(id) {
        if (!cache.has(id)) cache.set(id, await store.getPlant(id))
        return cache.get(id)
      },
    }
  },

  /** Every export shows the moment of the first one. */
  exportFirstMoment(store) {
    let first: ReturnType<Store['openSnapshot']> | undefined
    return {
      async openSnapshot() {
        first ??= store.openSnapshot()
        return { ...(await first), close: async () => {} }
      },
    }
  },

  // As a reader of an unsettled journal would.
  skipChanges: spoilPages((events) => events.slice(0, -1)),
  repeatChanges: spoilPages((events) => events.flatMap((event) => [event, event])),
  reverseChanges: spoilPages((events) => events.toReversed()),
} satisfies Record<string, (store: Store) => Partial<Store>>

/** The name of something that a store does wrong. */
export type Wrongdoing = keyof typeof wrongs

/** Makes a store do something wrong on purpose. */
export function spoil(store: Store, wrongdoing: Wrongdoing): Store {
  return { ...store, ...wrongs[wrongdoing](store) }
}

export function isWrongdoing(name: string): name is Wrongdoing {
  return name in wrongs
}
