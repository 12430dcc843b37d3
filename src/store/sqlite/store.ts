import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  buildGroupCommit,
  type GroupCommitBounds,
  rowBytes,
  standardBounds,
  toBytes,
  type Write,
} from '../group-commit.ts'
import { limitSnapshots } from '../snapshots.ts'
import { Deferred, type Soon } from '../soon.ts'
import { type Step, toCreate, toCreateOnce, toImport, toRemove, toReplace } from '../steps.ts'
import type { Store, Version } from '../store.ts'
import { randomVersion, toVersioned } from '../version.ts'
import { busyTimeoutMs } from './connection.ts'
import { isBusy, locked, toCommitFailure, toRefusal } from './failures.ts'
import { buildPlantStatements } from './plants.ts'
import { openSnapshot } from './snapshot.ts'
import { buildTokenStatements } from './tokens.ts'

interface SqliteWrite extends Write {
  /** Runs inside the transaction, at once and without waiting. */
  readonly step: Step<unknown>
  readonly arrivedAt: number
}

const bounds: GroupCommitBounds = { ...standardBounds, batchesInFlight: 1 }
/** How long a batch waits for the lock of another process, and how long it sleeps between two looks. */
const standardLockTimeoutMs = 5_000
const lockRetryMs = 2

/** What tests and benchmarks may set otherwise. */
export interface SqliteStoreOptions extends Partial<GroupCommitBounds> {
  readonly lockTimeoutMs?: number
  readonly newVersion?: () => Version
}

/** The store on an open connection, which it closes when it is closed. */
export function buildSqliteStore(db: DatabaseSync, options: SqliteStoreOptions = {}): Store {
  const {
    lockTimeoutMs = standardLockTimeoutMs,
    newVersion = randomVersion,
    ...overrides
  } = options
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const selectSchema = db.prepare('PRAGMA schema_version')
  const plants = buildPlantStatements(db)
  const tokens = buildTokenStatements(db)
  const group = buildGroupCommit(commitBatch, { ...bounds, ...overrides })

  function commitBatch(writes: SqliteWrite[]): unknown[] | Promise<unknown[]> {
    return tryBegin() ? runBatch(writes) : commitWhenUnlocked(writes)
  }

  function tryBegin(): boolean {
    try {
      begin.run()
      return true
    } catch (error) {
      if (isBusy(error)) return false
      throw toRefusal(error)
    }
  }

  // One synchronous stretch from BEGIN to COMMIT: with an `await` in between, requests would mix.
  function runBatch(writes: SqliteWrite[]): unknown[] {
    let explain = toRefusal
    try {
      const outcomes = writes.map(({ step }) => step(plants.rows))
      explain = toCommitFailure
      commit.run()
      return outcomes
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK')
      throw explain(error)
    }
  }

  async function commitWhenUnlocked(writes: SqliteWrite[]): Promise<unknown[]> {
    // From the arrival of the first: those that queue behind a batch do not wait once more.
    const deadline = (writes[0]?.arrivedAt ?? 0) + lockTimeoutMs
    db.exec('PRAGMA busy_timeout = 0')
    try {
      while (!tryBegin()) {
        if (performance.now() > deadline) throw locked()
        await sleep(lockRetryMs)
      }
    } finally {
      db.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    }
    return runBatch(writes)
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

  function change<Outcome>(step: Step<Outcome>, bytes = rowBytes): Soon<Outcome> {
    return group.submit<Outcome>({ step, bytes, arrivedAt: performance.now() })
  }

  async function write<Outcome>(step: Step<Outcome>, bytes = rowBytes): Promise<Outcome> {
    return change(step, bytes)
  }

  return {
    createPlant: (plant) => change(toCreate(toVersioned(plant, newVersion())), toBytes(plant)),
    createPlantOnce: (plant, key) =>
      change(toCreateOnce(toVersioned(plant, newVersion()), key), toBytes(plant)),
    getPlant: (id) => look(() => plants.rows.find(id)),
    listPlants: (query) => read(() => plants.list(query)),
    listIds: (query) => read(() => plants.listIds(query)),
    replacePlant: (plant, condition) =>
      change(toReplace(toVersioned(plant, newVersion()), condition), toBytes(plant)),
    removePlant: (id, condition) => change(toRemove(id, condition)),
    importPlants(imported, onConflict) {
      const bytes = imported.reduce((sum, plant) => sum + toBytes(plant), 0)
      return write(toImport(imported, onConflict, newVersion), bytes)
    },
    openSnapshot: limitSnapshots(() => read(() => openSnapshot(db))),
    forgetKeys: (usedBefore) => write(() => plants.forgetKeys(usedBefore)),

    addToken: (token) => write(() => tokens.add(token)),
    addFirstToken: (token) => write(() => tokens.addFirst(token)),
    findToken: (hash) => read(() => tokens.find(hash)),
    listTokens: () => read(tokens.list),
    revokeToken: (id, at) => write(() => tokens.revoke(id, at)),
    noteTokenUses: (uses) => write(() => tokens.noteUses(uses)),
    tokenRevision: () => read(tokens.revision),

    isFull: group.isFull,

    ping: () => read(() => void selectSchema.get()),

    async close() {
      await group.drain()
      db.close()
    },
  }
}
