import { randomVersion } from '../../../src/store/plant-writes.ts'
import type { Store, VersionedPlant } from '../../../src/store/store.ts'

/** Spoils a store on purpose. */
export type Spoil = (store: Store) => Store

/** Longer than the service lives in the tests. */
const lateMs = 60_000

function acknowledgeBeforeCommit(store: Store): Store {
  return {
    ...store,
    async createPlant(plant) {
      setTimeout(() => store.createPlant(plant), lateMs)
      return randomVersion()
    },
  }
}

/** Loses plants when the disk is full. */
function swallowCommitErrors(store: Store): Store {
  return {
    ...store,
    async createPlant(plant) {
      try {
        return await store.createPlant(plant)
      } catch {
        return randomVersion()
      }
    },
    async createPlantOnce(plant, key) {
      try {
        return await store.createPlantOnce(plant, key)
      } catch {
        return { version: randomVersion(), isReplay: false }
      }
    },
  }
}

function roundIds(store: Store): Store {
  const round = <Plant extends { id: bigint }>(plant: Plant): Plant => ({
    ...plant,
    id: BigInt.asIntN(64, BigInt(Number(plant.id))),
  })
  return { ...store, createPlant: (plant) => store.createPlant(round(plant)) }
}

function mixContents(store: Store): Store {
  let previous: VersionedPlant | undefined
  return {
    ...store,
    async getPlant(id) {
      const plant = await store.getPlant(id)
      const mixed = plant && previous && { ...previous, id }
      previous = plant
      return mixed ?? plant
    },
  }
}

function forgetKeys(store: Store): Store {
  return {
    ...store,
    async createPlantOnce(plant) {
      const version = await store.createPlant(plant)
      return version === 'exists' ? version : { version, isReplay: false }
    },
  }
}

/** Repeats the first answer, but stores the plant again. */
function storeTwice(store: Store): Store {
  return {
    ...store,
    async createPlantOnce(plant, key) {
      const outcome = await store.createPlantOnce(plant, key)
      if (typeof outcome !== 'string' && outcome.isReplay) await store.createPlant(plant)
      return outcome
    },
  }
}

function deleteNothing(store: Store): Store {
  return { ...store, deletePlant: async () => 'deleted' }
}

/** A full query has one plant more than the page: the one before it is left out. */
function skipAtPageEnd(store: Store): Store {
  return {
    ...store,
    async listPlants(query) {
      const page = await store.listPlants(query)
      const isEnd = page.plants.length === query.limit
      return isEnd ? { ...page, plants: page.plants.toSpliced(-2, 1) } : page
    },
  }
}

/** Leaves out the last change of a page, as a reader of an unsettled journal would. */
function skipChanges(store: Store): Store {
  return {
    ...store,
    async readJournal(after, limit) {
      const page = await store.readJournal(after, limit)
      return typeof page === 'string' ? page : { ...page, events: page.events.slice(0, -1) }
    },
  }
}

function repeatChanges(store: Store): Store {
  return {
    ...store,
    async readJournal(after, limit) {
      const page = await store.readJournal(after, limit)
      if (typeof page === 'string') return page
      return { ...page, events: page.events.flatMap((event) => [event, event]) }
    },
  }
}

function readFromOldCache(store: Store): Store {
  const cache = new Map<bigint, VersionedPlant | undefined>()
  return {
    ...store,
    async getPlant(id) {
      if (!cache.has(id)) cache.set(id, await store.getPlant(id))
      return cache.get(id)
    },
  }
}

export const spoilers = {
  acknowledgeBeforeCommit,
  swallowCommitErrors,
  roundIds,
  mixContents,
  forgetKeys,
  storeTwice,
  deleteNothing,
  skipAtPageEnd,
  readFromOldCache,
  skipChanges,
  repeatChanges,
} satisfies Record<string, Spoil>

export type Spoiler = keyof typeof spoilers
