import { setTimeout as sleep } from 'node:timers/promises'
import type { Store, VersionedPlant } from '../../src/store/store.ts'
import { randomVersion } from '../../src/store/version.ts'

/** Makes a store wrong on purpose. */
export type Spoil = (store: Store) => Store

/** Long enough that a kill comes in between. */
const lateMs = 100

function acknowledgeBeforeCommit(store: Store): Store {
  return {
    ...store,
    async createPlant(plant) {
      sleep(lateMs).then(() => store.createPlant(plant))
      return randomVersion()
    },
  }
}

/** For a store whose disk becomes full. */
function swallowCommitErrors(store: Store): Store {
  const pretend = () => ({ version: randomVersion(), isReplay: false })
  return {
    ...store,
    createPlant: (plant) => store.createPlant(plant).catch(randomVersion),
    createPlantOnce: (plant, key) => store.createPlantOnce(plant, key).catch(pretend),
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

/** The first answer is remembered, and the plant is stored all the same. */
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

/** Only a whole page has an end that is asked for: one more than the page is there, and the last one is left out. */
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
} satisfies Record<string, Spoil>

export type Spoiler = keyof typeof spoilers
