import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { GroupCommitBounds } from '../../src/store/group-commit.ts'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { breakSync } from './broken-sync.ts'
import { newFolder } from './folder.ts'

/** What can go wrong with a store, and what its callers must hear then. */
export type StoreFault = 'disk full' | 'not confirmed' | 'not reachable' | 'queue full'

/** An engine under test: every suite that concerns a store runs once for each. */
export interface Engine {
  readonly name: string
  /** A place for a new store, as DATABASE_URL names it. */
  newUrl(): string
  /** Opens the store at such a place. */
  open(url: string, bounds?: Partial<GroupCommitBounds>): Promise<Store>
  /** Keeps every write to the store waiting until the answered function is called. */
  block(url: string): Promise<() => void>
  /** A store of this engine with a fault that really happens. It can hold one plant, with the id 1. */
  openWithFault(fault: StoreFault): Promise<Store>
}

const sqlite: Engine = {
  name: 'SQLite',
  newUrl: () => `sqlite:${join(newFolder(), 'plants.db')}`,
  open: async (url, bounds) => buildSqliteStore(openConnection(toPath(url)), bounds),

  async block(url) {
    const other = new DatabaseSync(toPath(url))
    other.exec('BEGIN IMMEDIATE')
    return () => other.close()
  },

  async openWithFault(fault) {
    const path = toPath(sqlite.newUrl())
    const db = openConnection(path)
    const bounds = fault === 'queue full' ? { queueWrites: 0 } : {}
    const store = buildSqliteStore(db, { ...bounds, lockTimeoutMs: 50 })
    if (fault === 'queue full') return store
    await store.createPlant({ id: 1n, name: 'Aloe' })
    if (fault === 'disk full') {
      const { page_count } = db.prepare('PRAGMA page_count').get() as { page_count: bigint }
      db.exec(`PRAGMA max_page_count = ${page_count}`)
    }
    if (fault === 'not confirmed') breakSync(`${path}-wal`)
    if (fault === 'not reachable') {
      const release = await sqlite.block(`sqlite:${path}`)
      return { ...store, close: () => store.close().finally(release) }
    }
    return store
  },
}

function toPath(url: string): string {
  return url.replace(/^sqlite:/, '')
}

export const engines: readonly Engine[] = [sqlite]
