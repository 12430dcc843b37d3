import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { BatcherBounds } from '../../src/store/batcher.ts'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Journaling, Store } from '../../src/store/store.ts'
import { breakSync } from './broken-sync.ts'
import { newDatabase } from './databases.ts'
import { newFolder } from './folder.ts'
import { openClient, query } from './postgres.ts'
import { openProxy } from './proxy.ts'
import { releaseAfterTest, runOnce } from './release.ts'
import { answers, closeAfterTest, openPostgresStore, openSqliteStore } from './stores.ts'
import { waitUntil } from './wait.ts'

/** What can go wrong with a store. */
export type StoreFault = 'disk full' | 'not confirmed' | 'not reachable' | 'queue full'

export interface FaultyStore {
  readonly store: Store
  /** Another store on the same database, without the fault, that shows what was really stored. */
  readonly witness: Store
}

/** What a test may set on every engine. */
export type StoreOptions = Partial<BatcherBounds> & {
  readonly journaling?: Journaling
}

/** An engine under test: each suite about a store runs once for each. */
export interface Engine {
  readonly name: string
  /** The URL of a new database, as in DATABASE_URL. */
  newUrl(): Promise<string>
  /** Opens the store at such a URL. It is closed with the test. */
  open(url: string, options?: StoreOptions): Promise<Store>
  /** Makes every write to the store wait until the answered function is called or the test ends. */
  block(url: string): Promise<() => Promise<void>>
  /** Opens a store with a real fault. It holds one plant, with the id 1. Closed with the test. */
  openWithFault(fault: StoreFault): Promise<FaultyStore>
}

export const sqlite: Engine = {
  name: 'SQLite',

  newUrl: async () => `sqlite:${join(newFolder(), 'plants.db')}`,

  open: async (url, options) => openSqliteStore(toPath(url), options),
  async block(url) {
    const other = new DatabaseSync(toPath(url))
    other.exec('BEGIN IMMEDIATE')
    const release = runOnce(async () => other.close())
    releaseAfterTest(release)
    return release
  },

  async openWithFault(fault) {
    const url = await sqlite.newUrl()
    const first = openSqliteStore(toPath(url))
    await first.createPlant({ id: 1n, name: 'Aloe' })
    await first.close()
    const db = openConnection(toPath(url))
    if (fault === 'disk full') {
      // A few pages are free, which would take a plant.
      db.exec('VACUUM')
      const { page_count } = db.prepare('PRAGMA page_count').get() as { page_count: bigint }
      db.exec(`PRAGMA max_page_count = ${page_count}`)
    }
    const bounds = fault === 'queue full' ? { queueItems: 0 } : {}
    const store = closeAfterTest(buildSqliteStore(db, { ...bounds, lockTimeoutMs: 50 }))
    if (fault === 'not confirmed') {
      // The first write opens the log. The witness opens its own later, which must stay intact.
      await store.createPlant({ id: 2n, name: 'Basil' })
      breakSync(`${toPath(url)}-wal`)
    }
    const witness = openSqliteStore(toPath(url))
    if (fault === 'not reachable') {
      const release = await sqlite.block(url)
      return { store: { ...store, close: () => release().then(store.close) }, witness }
    }
    return { store, witness }
  },
}

function toPath(url: string): string {
  return url.replace(/^sqlite:/, '')
}

export const postgres: Engine = {
  name: 'PostgreSQL',

  newUrl: newDatabase,

  open: openPostgresStore,

  async block(url) {
    const client = await openClient(url)
    await client.query('BEGIN; LOCK TABLE plant_store.plants IN SHARE ROW EXCLUSIVE MODE')
    const release = runOnce(() => client.end())
    releaseAfterTest(release)
    return release
  },

  async openWithFault(fault) {
    const url = await postgres.newUrl()
    const witness = await openPostgresStore(url)
    await witness.createPlant({ id: 1n, name: 'Aloe' })
    if (fault === 'queue full')
      return { store: await openPostgresStore(url, { queueItems: 0 }), witness }
    if (fault === 'disk full') {
      await query(url, failingTrigger)
      return { store: await openPostgresStore(url), witness }
    }
    if (fault === 'not confirmed') {
      const store = await openPostgresStore(url, { answerTimeoutMs: 200 })
      const release = await postgres.block(url)
      return { store: { ...store, close: () => release().then(store.close) }, witness }
    }
    return { store: await openCutOff(url), witness }
  },
}

/** Opens a store whose connections to the server are cut. */
async function openCutOff(url: string): Promise<Store> {
  const { hostname, port } = new URL(url)
  const proxy = await openProxy(hostname, Number(port))
  const store = await openPostgresStore(proxy.toUrl(url))
  await proxy.cut()
  const what = 'the store has noticed that its server is away'
  await waitUntil(async () => !(await answers(store)), what)
  return store
}

const failingTrigger = `
  CREATE FUNCTION plant_store.fail() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$;
  CREATE TRIGGER fail BEFORE INSERT OR UPDATE OR DELETE ON plant_store.plants
    EXECUTE FUNCTION plant_store.fail()`

export const engines: readonly Engine[] = [sqlite, postgres]
