/// <reference lib="esnext.disposable" preserve="true" />
// First of all, because the others need a newer Node.js.
import './old-node.ts'

import { pino } from 'pino'
import { PlantStore } from '../client/index.ts'
import { toNewPlantJson } from '../client/json.ts'
import type { NewPlant } from '../client/types.ts'
import { readConfig } from './config.ts'
import { defaultTimeouts } from './contract/limits.ts'
import { NewPlant as newPlantShape } from './contract/shapes.ts'
import { buildShapeReader } from './json/plant-json.ts'
import { openService } from './service.ts'
import { openConnection } from './store/sqlite/connection.ts'
import { buildSqliteStore } from './store/sqlite/store.ts'
import type { Store } from './store/store.ts'
import { newToken } from './tokens/issue.ts'

export type { NewPlant, PlantStore }

export interface TestPlantStoreOptions {
  /** Stored at the start, in place of plants with the same ids. */
  readonly plants?: Iterable<NewPlant> | undefined
  /** A free port unless given. */
  readonly port?: number | undefined
  /** The token that the service accepts: 20 or more visible ASCII characters. */
  readonly token?: string | undefined
  /** `sqlite:PATH` or `postgres://…`, instead of a store in memory. */
  readonly database?: string | undefined
}

/** A service that runs in this process, for tests. */
export interface TestPlantStore extends AsyncDisposable {
  /** Its address, such as `http://127.0.0.1:40123`. */
  readonly url: string
  /** A token with every scope. */
  readonly token: string
  readonly client: PlantStore
  /** Makes these the only plants, none unless given, and forgets every idempotency key. */
  reset(plants?: Iterable<NewPlant>): Promise<void>
  /** Answers accepted requests and ends the service. */
  stop(): Promise<void>
}

/** Connections are closed once they are idle, and cut before the hook of a test times out. */
const timeouts = { ...defaultTimeouts, idleGraceMs: 0, shutdownMs: 2_000 }
/** How many plants are stored or deleted at a time. */
const pageSize = 500

/** Starts a service in this process. It reads no environment variable and prints nothing. */
export async function startPlantStore(
  options: TestPlantStoreOptions = {},
): Promise<TestPlantStore> {
  const { plants = [], port = 0, token = newToken(), database } = options
  const flags = { port: `${port}`, database: database ?? 'sqlite::memory:' }
  const { url, store, close } = await openService({
    config: readConfig(flags, { PLANT_STORE_TOKEN: token }),
    logger: pino({ level: 'silent' }, { write() {} }),
    timeouts,
    ...(database === undefined && { store: openInMemory() }),
  })
  let stopping: Promise<unknown> | undefined

  async function stop(): Promise<void> {
    stopping ??= close()
    await stopping
  }

  try {
    await storePlants(store, toPlants(plants))
  } catch (error) {
    await stop()
    throw error
  }
  return {
    url,
    token,
    client: new PlantStore({ url, token }),
    async reset(plants = []) {
      const checked = toPlants(plants)
      await deletePlants(store)
      while (!(await store.forgetKeys(Number.MAX_SAFE_INTEGER)));
      await storePlants(store, checked)
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/** Opens the default store. Its engine is imported statically, so that no start waits for it. */
function openInMemory(): Store {
  return buildSqliteStore(openConnection(':memory:'))
}

const readPlant = buildShapeReader(newPlantShape)

/** Checks plants as the service does. */
function toPlants(plants: Iterable<NewPlant>) {
  return Array.from(plants, (plant) => readPlant(toNewPlantJson(plant)))
}

async function storePlants(store: Store, plants: ReturnType<typeof toPlants>): Promise<void> {
  for (let first = 0; first < plants.length; first += pageSize) {
    await store.importPlants(plants.slice(first, first + pageSize), 'replace')
  }
}

async function deletePlants(store: Store): Promise<void> {
  for (;;) {
    const all = { after: undefined, tag: undefined, limit: pageSize }
    const { plants } = await store.listPlants(all)
    if (plants.length === 0) return
    await Promise.all(plants.map(({ id }) => store.deletePlant(id, {})))
  }
}
