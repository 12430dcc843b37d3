import type { DatabaseSync } from 'node:sqlite'
import { type BatcherBounds, buildBatcher, defaultBounds } from '../batcher.ts'
import { buildPlantWrites, randomVersion } from '../plant-writes.ts'
import { limitSnapshots } from '../snapshots.ts'
import type { Journaling, Store, StoreMeasures, Version } from '../store.ts'
import { buildWatch } from '../watch.ts'
import { read } from './failures.ts'
import { readSize } from './file.ts'
import { buildJournalStatements, setJournaling } from './journal.ts'
import { buildPlantStatements } from './plants.ts'
import { buildReceiverStatements } from './receivers.ts'
import { buildSnapshotOpener, defaultWalBounds, type WalBounds } from './snapshot.ts'
import { buildTokenStatements } from './tokens.ts'
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
  const tokens = buildTokenStatements(db)
  const receivers = buildReceiverStatements(db)
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

  return {
    ...buildPlantWrites((change) => write(() => writer.applyChange(change)), newVersion),
    getPlant: (id) => read(() => plants.rows.find(id)),
    listPlants: async (query) => read(() => plants.list(query)),
    openSnapshot: limitSnapshots(async () => read(openSnapshot)),
    forgetKeys: (usedBefore) => write(() => plants.forgetKeys(usedBefore)),

    readJournal: async (after, limit) => read(() => journal.read(after, limit)),
    journalEnd: async () => read(journal.end),
    newestPosition: async () => read(journal.end),
    watchJournal: watch.add,
    trimJournal: (before) => write(() => journal.trim(before)),
    measureJournal: async (after, upTo) => read(() => journal.measure(after, upTo)),
    dropChanges: (first, bytes) => write(() => journal.drop(first, bytes)),

    addToken: (token) => write(() => tokens.writes.addToken(token)),
    addFirstToken: (token) => write(() => tokens.writes.addFirstToken(token)),
    findToken: async (hash) => read(() => tokens.find(hash)),
    listTokens: async () => read(tokens.list),
    revokeToken: (id, at) => write(() => tokens.writes.revokeToken(id, at)),
    deleteTokens: (ids) => write(() => tokens.writes.deleteTokens(ids)),
    noteTokenUses: (uses) => write(() => tokens.writes.noteTokenUses(uses)),
    tokenRevision: async () => read(tokens.revision),

    receivers: {
      add: (receiver) => write(() => receivers.writes.addReceiver(receiver)),
      list: async () => read(receivers.list),
      change: (id, change) => write(() => receivers.writes.changeReceiver(id, change)),
      remove: (id) => write(() => receivers.writes.removeReceiver(id)),
      revision: async () => read(receivers.revision),
      claim(owner, leaseMs) {
        const now = Date.now()
        return write(() => receivers.writes.claimLeases(owner, leaseMs, now))
      },
      release: (owner) => write(() => receivers.writes.releaseLeases(owner)),
      take: (owner, taken) => write(() => receivers.writes.takeDeliveries(owner, taken), true),
      save: (owner, saved) => write(() => receivers.writes.saveOutcomes(owner, saved), true),
      listDeliveries: async (...asked) => read(() => receivers.listDeliveries(...asked)),
      listBacklogs: async () => read(receivers.listBacklogs),
      retryFailures: (...args) => write(() => receivers.writes.retryFailures(...args)),
      addDelivery: (id, delivery) => write(() => receivers.writes.addDelivery(id, delivery)),
    },

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
