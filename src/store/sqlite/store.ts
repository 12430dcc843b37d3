import type { DatabaseSync } from 'node:sqlite'
import { buildPlantWrites, buildWatch } from '../changes.ts'
import { buildJournalUpkeep } from '../journal-steps.ts'
import { buildReceiverStore, type LeasedWork } from '../receivers.ts'
import { limitSnapshots } from '../snapshots.ts'
import type { Run } from '../steps.ts'
import type { Store, StoreMeasures } from '../store.ts'
import { buildTokenStore } from '../token-steps.ts'
import { buildStepRunner } from './database.ts'
import { read } from './failures.ts'
import { readSize } from './file.ts'
import { buildJournalStatements } from './journal.ts'
import { buildPlantStatements } from './plants.ts'
import { claimLeases, saveOutcomes, takeDeliveries } from './receivers.ts'
import { defaultWalBounds, openSnapshot, type WalBounds } from './snapshot.ts'
import { buildWriter, type WriterOptions } from './writer.ts'

/** How often a watched journal is polled for commits of other processes. */
const pollMs = 100

/** Settings for tests and benchmarks. */
export interface SqliteStoreOptions extends WriterOptions {
  readonly wal?: WalBounds
}

/** Builds the store on an open connection, which `close` closes. */
export function buildSqliteStore(db: DatabaseSync, options: SqliteStoreOptions = {}): Store {
  const { wal = defaultWalBounds, ...writerOptions } = options
  const selectSchema = db.prepare('PRAGMA schema_version')
  const plants = buildPlantStatements(db)
  const runSteps = buildStepRunner(db)
  const journal = buildJournalStatements(db)
  // Changes with every commit of another connection, and only reads memory.
  const selectCommits = db.prepare('PRAGMA data_version')
  const watch = buildWatch(() => selectCommits.get()?.data_version, pollMs)
  const writer = buildWriter(db, plants.rows, journal, watch.wake, writerOptions)

  const readSteps: Run = async (operation) => read(() => runSteps(operation()))
  const writeSteps: Run = (operation) => writer.write(() => runSteps(operation()))

  const leasedWork: LeasedWork = {
    claim: (owner, leaseMs) => writeSteps(() => claimLeases(owner, leaseMs)),
    take: (owner, taken) => writer.writeRepeatable(() => runSteps(takeDeliveries(owner, taken))),
    save: (owner, saved) => writer.writeRepeatable(() => runSteps(saveOutcomes(owner, saved))),
  }

  return {
    ...buildPlantWrites(writer.writeChange),
    getPlant: (id) => read(() => plants.rows.find(id)),
    listPlants: async (query) => read(() => plants.list(query)),
    openSnapshot: limitSnapshots(async (othersOpen) =>
      read(() => openSnapshot(db, wal, othersOpen)),
    ),

    readJournal: async (after, limit) => read(() => journal.read(after, limit)),
    journalEnd: async () => read(journal.end),
    newestPosition: async () => read(journal.end),
    watchJournal: watch.add,
    ...buildJournalUpkeep(readSteps, writeSteps),
    ...buildTokenStore(readSteps, writeSteps),
    receivers: buildReceiverStore(readSteps, writeSteps, leasedWork),
    isFull: writer.isFull,

    ping: async () => read(() => void selectSchema.get()),

    measure: async () => ({ isUp: true, ...writer.measure(), sizes: readSizes(db) }),

    async close() {
      await writer.drain()
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
