import type { DatabaseSync } from 'node:sqlite'
import {
  type BatcherBounds,
  buildBatcher,
  defaultBounds,
  rowBytes,
  toBytes,
  type Write,
} from '../batcher.ts'
import { toCreateOnce, toImport } from '../changes.ts'
import { limitSnapshots } from '../snapshots.ts'
import { Deferred, type Soon } from '../soon.ts'
import type { Store, Version } from '../store.ts'
import { randomVersion, toVersioned } from '../version.ts'
import { buildStatements, type SqliteChange, type SqliteOutcome } from './changes.ts'
import { toRefusal } from './failures.ts'
import { openSnapshot } from './snapshot.ts'
import { openWriter, type WriterLocation } from './writer.ts'

interface SqliteWrite extends Write {
  readonly change: SqliteChange
  readonly arrivedAt: number
}

const bounds: BatcherBounds = { ...defaultBounds, batchesInFlight: 1 }
/** How long a batch waits for the lock of another process. */
const defaultLockTimeoutMs = 5_000

/** What tests and benchmarks may set otherwise. */
export interface SqliteStoreOptions extends Partial<BatcherBounds> {
  readonly lockTimeoutMs?: number
  readonly newVersion?: () => Version
  readonly writer?: WriterLocation
}

/** The store on an open connection, which it closes when it is closed. */
export function buildSqliteStore(db: DatabaseSync, options: SqliteStoreOptions = {}): Store {
  const {
    lockTimeoutMs = defaultLockTimeoutMs,
    newVersion = randomVersion,
    writer: location = 'adaptive',
    ...overrides
  } = options
  const selectSchema = db.prepare('PRAGMA schema_version')
  const statements = buildStatements(db)
  const { plants, tokens } = statements
  const writer = openWriter(db, statements, { location, lockTimeoutMs })
  const group = buildBatcher(commitBatch, { ...bounds, ...overrides }, writer.commitDelayMs)

  function commitBatch(writes: SqliteWrite[]): unknown[] | Promise<unknown[]> {
    const changes = writes.map(({ change }) => change)
    return writer.commit({ changes, arrivedAt: writes[0]?.arrivedAt ?? 0 })
  }

  function look<Row>(run: () => Row): Soon<Row> {
    try {
      return Deferred.fulfilled(run())
    } catch (error) {
      return Deferred.rejected(toRefusal(error))
    }
  }

  async function read<Row>(run: () => Row): Promise<Row> {
    return look(run)
  }

  function change<One extends SqliteChange>(one: One, bytes = rowBytes): Soon<SqliteOutcome<One>> {
    return group.submit({ change: one, bytes, arrivedAt: performance.now() })
  }

  async function write<One extends SqliteChange>(
    one: One,
    bytes = rowBytes,
  ): Promise<SqliteOutcome<One>> {
    return change(one, bytes)
  }

  return {
    createPlant: (plant) =>
      change({ kind: 'create', plant: toVersioned(plant, newVersion()) }, toBytes(plant)),
    createPlantOnce: (plant, key) =>
      change(toCreateOnce(toVersioned(plant, newVersion()), key), toBytes(plant)),
    getPlant: (id) => look(() => plants.rows.find(id)),
    listPlants: (query) => read(() => plants.list(query)),
    listIds: (query) => read(() => plants.listIds(query)),
    replacePlant(plant, condition) {
      const versioned = toVersioned(plant, newVersion())
      return change({ kind: 'replace', plant: versioned, condition }, toBytes(plant))
    },
    deletePlant: (id, condition) => change({ kind: 'delete', id, condition }),
    importPlants(imported, onConflict) {
      const bytes = imported.reduce((sum, plant) => sum + toBytes(plant), 0)
      return write(toImport(imported, onConflict, newVersion), bytes)
    },
    openSnapshot: limitSnapshots(() => read(() => openSnapshot(db))),
    forgetKeys: (usedBefore) => write({ kind: 'forget keys', usedBefore }),

    addToken: (token) => write({ kind: 'add token', token }),
    addFirstToken: (token) => write({ kind: 'add first token', token }),
    findToken: (hash) => read(() => tokens.find(hash)),
    listTokens: () => read(tokens.list),
    revokeToken: (id, at) => write({ kind: 'revoke token', id, at }),
    noteTokenUses: (uses) => write({ kind: 'note token uses', uses }),
    tokenRevision: () => read(tokens.revision),

    isFull: group.isFull,

    ping: () => read(() => void selectSchema.get()),

    async close() {
      await group.drain()
      await writer.close()
      // The last one out empties the log.
      db.close()
    },
  }
}
