import { openPrimary } from '../../src/store/postgres/connection.ts'
import { buildPostgresStore, type PostgresOptions } from '../../src/store/postgres/store.ts'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { buildSqliteStore, type SqliteStoreOptions } from '../../src/store/sqlite/store.ts'
import type { Journaling, Store } from '../../src/store/store.ts'
import { releaseAfterTest, runOnce } from './release.ts'

const quiet = { onLost() {}, onFound() {} }

/** Opens a store on a SQLite file. It is closed with the test. */
export function openSqliteStore(path: string, options?: SqliteStoreOptions): Store {
  return closeAfterTest(buildSqliteStore(openConnection(path), options))
}

/** Longer than an answer takes on a busy machine: a slow one is no failure of the store. */
const answerTimeoutMs = 60_000

/** Opens a store on a PostgreSQL database. It is closed with the test. */
export async function openPostgresStore(
  url: string,
  { journaling, ...options }: PostgresOptions & { readonly journaling?: Journaling } = {},
): Promise<Store> {
  const connection = await openPrimary(url, quiet, undefined, journaling)
  return closeAfterTest(buildPostgresStore(connection, { answerTimeoutMs, ...options }))
}

/** Closes a store when the test ends, unless the test or a service has closed it by then. */
export function closeAfterTest(store: Store): Store {
  const close = runOnce(store.close)
  releaseAfterTest(close)
  return { ...store, close }
}
