import { Failure } from '../../../src/contract/errors.ts'
import { randomVersion } from '../../../src/store/changes.ts'
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

/** Tells the client that nothing is stored, although it is. */
function refuseStored(store: Store): Store {
  return {
    ...store,
    async createPlant(plant) {
      await store.createPlant(plant)
      throw new Failure(50301, 'Nothing was stored.')
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

type Events = Exclude<Awaited<ReturnType<Store['readJournal']>>, string>['events']

const spoilPages =
  (spoil: (events: Events) => Events): Spoil =>
  (store) => ({
    ...store,
    async readJournal(after, limit) {
      const page = await store.readJournal(after, limit)
      return typeof page === 'string' ? page : { ...page, events: spoil(page.events) }
    },
  })

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

/** Every export shows the moment of the first one. */
function exportFirstMoment(store: Store): Store {
  let first: ReturnType<Store['openSnapshot']> | undefined
  const openSnapshot = async () => {
    first ??= store.openSnapshot()
    return { ...(await first), close: async () => {} }
  }
  return { ...store, openSnapshot }
}

export const spoilers = {
  acknowledgeBeforeCommit,
  swallowCommitErrors,
  refuseStored,
  roundIds,
  mixContents,
  forgetKeys,
  storeTwice,
  deleteNothing,
  skipAtPageEnd,
  readFromOldCache,
  exportFirstMoment,
  // As a reader of an unsettled journal would.
  skipChanges: spoilPages((events) => events.slice(0, -1)),
  repeatChanges: spoilPages((events) => events.flatMap((event) => [event, event])),
  reverseChanges: spoilPages((events) => events.toReversed()),
} satisfies Record<string, Spoil>
