import type { BatcherBounds } from '../../src/store/batcher.ts'
import { openPrimary, type PrimaryOptions } from '../../src/store/postgres/primary.ts'
import { buildPostgresStore } from '../../src/store/postgres/store.ts'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { buildSqliteStore, type SqliteStoreOptions } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { newDatabase } from './databases.ts'
import type { StoreOptions } from './engines.ts'
import { releaseAfterTest, runOnce } from './release.ts'

/** For a connection of which nobody wants to know whether it is lost. */
export const quiet = { onLost() {}, onFound() {} }

/** The query that every plant answers. */
export const everything = { after: undefined, tag: undefined, limit: Number.POSITIVE_INFINITY }

/** Opens a store on a SQLite file. It is closed with the test. */
export function openSqliteStore(
  path: string,
  { journaling = 'as before', ...options }: SqliteStoreOptions & StoreOptions = {},
): Store {
  return closeAfterTest(buildSqliteStore(openConnection(path, { journaling }), options))
}

/** Longer than an answer takes on a busy machine: a slow one is no failure of the store. */
const defaultAnswerTimeoutMs = 60_000
const connectTimeout = 'connect_timeout=60'

export type PostgresStoreOptions = Partial<BatcherBounds> & PrimaryOptions

/** Opens a store on a PostgreSQL database. It is closed with the test. */
export async function openPostgresStore(
  url: string,
  { journaling, startTimeoutMs, ...options }: PostgresStoreOptions = {},
): Promise<Store> {
  const { answerTimeoutMs = defaultAnswerTimeoutMs, ...rest } = options
  const isPatient = url.includes('connect_timeout')
  const patient = isPatient ? url : `${url}${url.includes('?') ? '&' : '?'}${connectTimeout}`
  const primary = await openPrimary(patient, quiet, {
    answerTimeoutMs,
    ...(journaling && { journaling }),
    ...(startTimeoutMs && { startTimeoutMs }),
  })
  return closeAfterTest(buildPostgresStore(primary, rest))
}

/** Opens a store on a new database of PostgreSQL. */
export async function openNewPostgresStore(options?: PostgresStoreOptions) {
  const url = await newDatabase()
  return { url, store: await openPostgresStore(url, options) }
}

/** Closes a store when the test ends, unless the test or a service has closed it by then. */
export function closeAfterTest(store: Store): Store {
  const close = runOnce(store.close)
  releaseAfterTest(close)
  return { ...store, close }
}

/** Stores plants of one name, with ids from the first one on. */
export async function storeMany(
  store: Store,
  first: number,
  count: number,
  name = 'x',
): Promise<void> {
  const plants = Array.from({ length: count }, (_, index) => ({ id: BigInt(first + index), name }))
  await store.importPlants(plants, 'keep')
}

/** Whether a store answers. */
export const answers = (store: Store): Promise<boolean> =>
  store.ping().then(
    () => true,
    () => false,
  )

/** The ids of the plants with a tag, up to a page of them. */
export async function listIds(store: Store, tag: string | undefined): Promise<bigint[]> {
  const { plants } = await store.listPlants({ after: undefined, tag, limit: 100 })
  return plants.map(({ id }) => id)
}

/** The store, and how many watch its journal: a sender does while it has a receiver to serve. */
export function watch(store: Store): { readonly store: Store; watchers(): number } {
  let watchers = 0
  const watched: Store = {
    ...store,
    watchJournal(onChange) {
      const stop = store.watchJournal(onChange)
      watchers++
      return () => {
        watchers--
        stop()
      }
    },
  }
  return { store: watched, watchers: () => watchers }
}
