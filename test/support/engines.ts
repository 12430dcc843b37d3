import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import postgres from 'postgres'
import type { BatcherBounds } from '../../src/store/batcher.ts'
import { openPrimary } from '../../src/store/postgres/connection.ts'
import { buildPostgresStore, type PostgresStoreOptions } from '../../src/store/postgres/store.ts'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { buildSqliteStore, type SqliteStoreOptions } from '../../src/store/sqlite/store.ts'
import type { WriterLocation } from '../../src/store/sqlite/writer.ts'
import type { Store } from '../../src/store/store.ts'
import { breakSync } from './broken-sync.ts'
import { newFolder } from './folder.ts'
import { newCluster, query, startServer } from './postgres.ts'
import { openProxy } from './proxy.ts'

/** What can go wrong with a store. */
export type StoreFault = 'disk full' | 'not confirmed' | 'not reachable' | 'queue full'

export interface FaultyStore {
  readonly store: Store
  /** Another opener of the same place, without the fault, to look at what was really stored. */
  readonly witness: Store
}

/** What every engine lets a test set. */
export type StoreOptions = Partial<BatcherBounds> & { readonly newVersion?: () => bigint }

/** An engine under test: every suite that concerns a store runs once for each. */
export interface Engine {
  readonly name: string
  /** A place for a new store, as DATABASE_URL names it. */
  newUrl(): Promise<string>
  /** Opens the store at such a place. */
  open(url: string, options?: StoreOptions): Promise<Store>
  /** Keeps every write to the store waiting until the answered function is called. */
  block(url: string): Promise<() => Promise<void>>
  /** A store with a fault that really happens. It holds one plant, with the id 1, where it can hold any. */
  openWithFault(fault: StoreFault): Promise<FaultyStore>
}

function toSqlite(name: string, writer: WriterLocation): Engine {
  const newUrl = async () => `sqlite:${join(newFolder(), 'plants.db')}`
  const build = (db: DatabaseSync, options?: SqliteStoreOptions) =>
    buildSqliteStore(db, { writer, ...options })

  async function block(url: string) {
    const other = new DatabaseSync(toPath(url))
    other.exec('BEGIN IMMEDIATE')
    return async () => other.close()
  }

  return {
    name,
    newUrl,
    open: async (url, options) => build(openConnection(toPath(url)), options),
    block,

    async openWithFault(fault) {
      const url = await newUrl()
      const first = build(openConnection(toPath(url)))
      await first.createPlant({ id: 1n, name: 'Aloe' })
      await first.close()
      const db = openConnection(toPath(url))
      if (fault === 'disk full') {
        const { page_count } = db.prepare('PRAGMA page_count').get() as { page_count: bigint }
        db.exec(`PRAGMA max_page_count = ${page_count}`)
      }
      const bounds = fault === 'queue full' ? { queueItems: 0 } : {}
      const store = build(db, { ...bounds, lockTimeoutMs: 50 })
      if (fault === 'not confirmed') {
        // Its log is open from the first write on. Before the witness opens the same: it shall keep its own.
        await store.createPlant({ id: 2n, name: 'Basil' })
        breakSync(`${toPath(url)}-wal`)
      }
      const witness = build(openConnection(toPath(url)))
      if (fault === 'not reachable') {
        const release = await block(url)
        return { store: { ...store, close: () => store.close().finally(release) }, witness }
      }
      return { store, witness }
    },
  }
}

function toPath(url: string): string {
  return url.replace(/^sqlite:/, '')
}

const quiet = { onLost() {}, onFound() {} }

const postgresql: Engine = {
  name: 'PostgreSQL',

  async newUrl() {
    const server = await findServer()
    const database = `plants_${randomBytes(6).toString('hex')}`
    await query(`${server}postgres`, `CREATE DATABASE ${database}`)
    return server + database
  },

  open: (url, bounds) => openPostgres(url, bounds),

  async block(url) {
    const sql = postgres(url, { max: 1, onnotice: () => {} })
    await sql.unsafe('BEGIN; LOCK TABLE plant_store.plants IN SHARE ROW EXCLUSIVE MODE')
    return () => sql.end()
  },

  async openWithFault(fault) {
    const url = await postgresql.newUrl()
    const witness = await openPostgres(url)
    await witness.createPlant({ id: 1n, name: 'Aloe' })
    if (fault === 'queue full')
      return { store: await openPostgres(url, { queueItems: 0 }), witness }
    if (fault === 'disk full') {
      await query(url, failingTrigger)
      return { store: await openPostgres(url), witness }
    }
    if (fault === 'not confirmed') {
      const store = await openPostgres(url, { answerTimeoutMs: 200 })
      const release = await postgresql.block(url)
      return { store: { ...store, close: () => release().then(store.close) }, witness }
    }
    const { hostname, port } = new URL(url)
    const proxy = await openProxy(hostname, Number(port))
    const store = await openPostgres(url.replace(`:${port}/`, `:${proxy.port}/`))
    await proxy.cut()
    while (
      await store.ping().then(
        () => true,
        () => false,
      )
    )
      await new Promise(setImmediate)
    return { store, witness }
  },
}

async function openPostgres(url: string, options?: PostgresStoreOptions): Promise<Store> {
  return buildPostgresStore(await openPrimary(url, quiet), options)
}

const failingTrigger = `
  CREATE FUNCTION plant_store.fail() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$;
  CREATE TRIGGER fail BEFORE INSERT OR UPDATE OR DELETE ON plant_store.plants EXECUTE FUNCTION plant_store.fail()`

let ownServer: Promise<string> | undefined

/** The server that the whole run shares, or one of this file's own when it is run alone. */
export function findServer(): Promise<string> {
  const { TEST_POSTGRES_URL } = process.env
  if (TEST_POSTGRES_URL) return Promise.resolve(TEST_POSTGRES_URL)
  ownServer ??= (async () => {
    const server = await startServer(await newCluster(), { fsync: 'off' })
    // To the very end: the stores of this file are closed in hooks of their own.
    server.detach()
    process.on('exit', server.kill)
    return server.toUrl('')
  })()
  return ownServer
}

export const engines: readonly Engine[] = [toSqlite('SQLite', 'adaptive'), postgresql]

/** Beside the engines, one whose writes always go the way that others go on slow disks only. */
export const everyEngine: readonly Engine[] = [
  ...engines,
  toSqlite('SQLite with a thread', 'thread'),
]
