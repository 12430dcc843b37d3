import type { DatabaseSync } from 'node:sqlite'
import { type BatcherBounds, buildBatcher, defaultBounds } from '../batcher.ts'
import { buildJournalUpkeep } from '../journal-steps.ts'
import { buildPlantWrites, randomVersion } from '../plant-writes.ts'
import { buildReceiverStore, type LeasedWork } from '../receiver-steps.ts'
import { limitSnapshots } from '../snapshots.ts'
import type { Run } from '../steps.ts'
import type { Journaling, Store, StoreMeasures, Version } from '../store.ts'
import { buildTokenStore } from '../token-steps.ts'
import { buildWatch } from '../watch.ts'
import { read } from './failures.ts'
import { readSize } from './file.ts'
import { buildJournalStatements, setJournaling } from './journal.ts'
import { buildPlantStatements } from './plants.ts'
import { claimLeases, saveOutcomes, takeDeliveries } from './receivers.ts'
import { buildSnapshotOpener, defaultWalBounds, type WalBounds } from './snapshot.ts'
import { buildStepRunner } from './steps.ts'
import { buildWriter } from './writer.ts'

const bounds: BatcherBounds = { ...defaultBounds, batchesInFlight: 1 }
/** How long a batch waits for the lock of another process. */
const defaultLockTimeoutMs = 5_000
/** How often a watched journal is polled for commits of other processes. */
const pollMs = 100

/** Whether changes are journaled, and settings for tests and benchmarks. */
export interface SqliteStoreOptions extends Partial<BatcherBounds> {
  readonly lockTimeoutMs?: number
  readonly newVersion?: () => Version
  readonly wal?: WalBounds
  readonly journaling?: Journaling
}

/** Builds the store on an open connection, which `close` closes. */
export function buildSqliteStore(db: DatabaseSync, options: SqliteStoreOptions = {}): Store {
  const {
    lockTimeoutMs = defaultLockTimeoutMs,
    newVersion = randomVersion,
    wal = defaultWalBounds,
    journaling = 'as before',
    ...overrides
  } = options
  const selectSchema = db.prepare('PRAGMA schema_version')
  const plants = buildPlantStatements(db)
  const runSteps = buildStepRunner(db)
  const journal = buildJournalStatements(db)
  setJournaling(db, journal, journaling)
  const openSnapshot = buildSnapshotOpener(db, wal)
  // Changes with every commit of another connection, and only reads memory.
  const selectCommits = db.prepare('PRAGMA data_version')
  const watch = buildWatch(() => selectCommits.get()?.data_version, pollMs)
  const onJournaled = watch.wake
  const writer = buildWriter(db, plants.rows, journal, { lockTimeoutMs, onJournaled })
  const batcher = buildBatcher(writer.commit, { ...bounds, ...overrides })

  /** Queues a function that runs inside the transaction of its batch. */
  function write<Outcome>(run: () => Outcome, isRepeatable = false): Promise<Outcome> {
    return batcher.submit({ run, isRepeatable, arrivedAt: performance.now() })
  }

  const readSteps: Run = async (operation) => read(() => runSteps(operation()))
  const writeSteps: Run = (operation) => write(() => runSteps(operation()))

  const leasedWork: LeasedWork = {
    claim(owner, leaseMs) {
      const now = Date.now()
      return writeSteps(() => claimLeases(owner, leaseMs, now))
    },
    take: (owner, taken) => write(() => runSteps(takeDeliveries(owner, taken)), true),
    save: (owner, saved) => write(() => runSteps(saveOutcomes(owner, saved)), true),
  }

  return {
    ...buildPlantWrites((change) => write(() => writer.applyChange(change)), newVersion),
    getPlant: (id) => read(() => plants.rows.find(id)),
    listPlants: async (query) => read(() => plants.list(query)),
    openSnapshot: limitSnapshots(async () => read(openSnapshot)),

    readJournal: async (after, limit) => read(() => journal.read(after, limit)),
    journalEnd: async () => read(journal.end),
    newestPosition: async () => read(journal.end),
    watchJournal: watch.add,
    ...buildJournalUpkeep(readSteps, writeSteps),
    ...buildTokenStore(readSteps, writeSteps),
    receivers: buildReceiverStore(readSteps, writeSteps, leasedWork),
    isFull: batcher.isFull,

    ping: async () => read(() => void selectSchema.get()),

    async measure() {
      const { queuedItems: queuedWrites, ...measured } = batcher.measure()
      return { isUp: true, queuedWrites, ...measured, ...writer.measures, sizes: readSizes(db) }
    },

    async close() {
      await batcher.drain()
      // The last connection to close checkpoints and removes the WAL.
      db.close()
    },
  }
}

/** The sizes of the database and of its WAL. A database in memory has none. */
function readSizes(db: DatabaseSync): StoreMeasures['sizes'] {
  const path = db.location()
  if (path === null) return []
  return [
    ['data', readSize(path)],
    ['log', readSize(`${path}-wal`)],
  ]
}
