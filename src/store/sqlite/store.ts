import type { DatabaseSync } from 'node:sqlite'
import { type BatcherBounds, buildBatcher, defaultBounds, rowBytes, toBytes } from '../batcher.ts'
import { toCreateOnce, toImport } from '../changes.ts'
import { limitSnapshots } from '../snapshots.ts'
import type { Store, Version } from '../store.ts'
import { randomVersion, toVersioned } from '../version.ts'
import { toRefusal } from './failures.ts'
import { readSizes } from './file-sizes.ts'
import { boundLog, defaultLogBounds, type LogBounds } from './log-bound.ts'
import { buildStatements, type SqliteChange, type SqliteOutcome } from './transactions.ts'
import { openWriter, type WriterLocation } from './writer.ts'

const bounds: BatcherBounds = { ...defaultBounds, batchesInFlight: 1 }
/** How long a batch waits for the lock of another process. */
const defaultLockTimeoutMs = 5_000

/** What tests and benchmarks may set. */
export interface SqliteStoreOptions extends Partial<BatcherBounds> {
  readonly lockTimeoutMs?: number
  readonly newVersion?: () => Version
  readonly writer?: WriterLocation
  readonly log?: LogBounds
}

/** The store on an open connection, which it closes when it is closed. */
export function buildSqliteStore(db: DatabaseSync, options: SqliteStoreOptions = {}): Store {
  const {
    lockTimeoutMs = defaultLockTimeoutMs,
    newVersion = randomVersion,
    writer: location = 'adaptive',
    log = defaultLogBounds,
    ...overrides
  } = options
  const selectSchema = db.prepare('PRAGMA schema_version')
  const statements = buildStatements(db)
  const { plants, tokens } = statements
  const writer = openWriter(db, statements, { location, lockTimeoutMs })
  const openSnapshot = boundLog(db, log)
  const batcher = buildBatcher(writer.commit, { ...bounds, ...overrides }, writer.commitDelayMs)

  function read<Row>(run: () => Row): Row {
    try {
      return run()
    } catch (error) {
      throw toRefusal(error)
    }
  }

  function write<One extends SqliteChange>(
    change: One,
    bytes = rowBytes,
  ): Promise<SqliteOutcome<One>> {
    return batcher.submit({ change, bytes, arrivedAt: performance.now() })
  }

  return {
    createPlant: (plant) =>
      write({ kind: 'create', plant: toVersioned(plant, newVersion()) }, toBytes(plant)),
    createPlantOnce: (plant, key) =>
      write(toCreateOnce(toVersioned(plant, newVersion()), key), toBytes(plant)),
    getPlant: (id) => read(() => plants.rows.find(id)),
    listPlants: async (query) => read(() => plants.list(query)),
    listIds: async (query) => read(() => plants.listIds(query)),
    replacePlant(plant, condition) {
      const versioned = toVersioned(plant, newVersion())
      return write({ kind: 'replace', plant: versioned, condition }, toBytes(plant))
    },
    deletePlant: (id, condition) => write({ kind: 'delete', id, condition }),
    importPlants(imported, onConflict) {
      const bytes = imported.reduce((sum, plant) => sum + toBytes(plant), 0)
      return write(toImport(imported, onConflict, newVersion), bytes)
    },
    openSnapshot: limitSnapshots(async () => read(openSnapshot)),
    forgetKeys: (usedBefore) => write({ kind: 'forget keys', usedBefore }),

    addToken: (token) => write({ kind: 'add token', token }),
    addFirstToken: (token) => write({ kind: 'add first token', token }),
    findToken: async (hash) => read(() => tokens.find(hash)),
    listTokens: async () => read(tokens.list),
    revokeToken: (id, at) => write({ kind: 'revoke token', id, at }),
    deleteTokens: (ids) => write({ kind: 'delete tokens', ids }),
    noteTokenUses: (uses) => write({ kind: 'note token uses', uses }),
    tokenRevision: async () => read(tokens.revision),

    isFull: batcher.isFull,

    ping: async () => read(() => void selectSchema.get()),

    async measure() {
      const { queuedItems: queuedWrites, ...measured } = batcher.measure()
      const { commitSeconds } = writer
      return { isUp: true, queuedWrites, ...measured, commitSeconds, sizes: readSizes(db) }
    },

    async close() {
      await batcher.drain()
      await writer.close()
      // The last connection to close empties the log.
      db.close()
    },
  }
}
