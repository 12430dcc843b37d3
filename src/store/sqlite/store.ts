import type { DatabaseSync } from 'node:sqlite'
import { type BatcherBounds, buildBatcher, defaultBounds } from '../batcher.ts'
import { diskFailed, diskFull } from '../failures.ts'
import { buildPlantWrites, randomVersion, rowBytes } from '../plant-writes.ts'
import type { Taken } from '../receivers.ts'
import { limitSnapshots } from '../snapshots.ts'
import type { Journaling, Store, StoreMeasures, Version } from '../store.ts'
import { buildWatch } from '../watch.ts'
import { requireSyncs } from './connection.ts'
import { isOutOfSpace, read } from './failures.ts'
import { readSize } from './file.ts'
import { setJournaling } from './journal.ts'
import { buildSnapshotOpener, defaultWalBounds, type WalBounds } from './snapshot.ts'
import { buildStatements, type SqliteChange, type Writes } from './transactions.ts'
import { openWriter, type SqliteWrite, type WriterLocation } from './writer.ts'

const bounds: BatcherBounds = { ...defaultBounds, batchesInFlight: 1 }
/** How long a batch waits for the lock of another process. */
const defaultLockTimeoutMs = 5_000
/** How often a watched journal is polled for commits of other processes. */
const pollMs = 100

/** Whether changes are journaled, and settings for tests and benchmarks. */
export interface SqliteStoreOptions extends Partial<BatcherBounds> {
  readonly lockTimeoutMs?: number
  readonly newVersion?: () => Version
  readonly writer?: WriterLocation
  readonly wal?: WalBounds
  readonly journaling?: Journaling
}

/** Builds the store on an open connection, which `close` closes. */
export function buildSqliteStore(db: DatabaseSync, options: SqliteStoreOptions = {}): Store {
  const {
    lockTimeoutMs = defaultLockTimeoutMs,
    newVersion = randomVersion,
    writer: location = 'adaptive',
    wal = defaultWalBounds,
    journaling = 'as before',
    ...overrides
  } = options
  const selectSchema = db.prepare('PRAGMA schema_version')
  const statements = buildStatements(db)
  const { plants, tokens, receivers, journal } = statements
  setJournaling(db, journal, journaling)
  const writer = openWriter(db, statements, { location, lockTimeoutMs })
  const openSnapshot = buildSnapshotOpener(db, wal)
  // Changes with every commit of another connection, and only reads memory.
  const selectCommits = db.prepare('PRAGMA data_version')
  const watch = buildWatch(() => selectCommits.get()?.data_version, pollMs)
  const batcher = buildBatcher(commit, { ...bounds, ...overrides }, writer.commitDelayMs)

  async function commit(batch: readonly SqliteWrite[]): Promise<unknown[]> {
    prove()
    try {
      return await writer.commit(batch)
    } finally {
      // Tokens, leases and deliveries are not in the journal.
      if (batch.some(({ change }) => change.kind !== 'call')) watch.wake()
    }
  }

  /** Before the first commit, proves that commits are synced. */
  function prove(): void {
    try {
      requireSyncs(db)
    } catch (error) {
      throw isOutOfSpace(error) ? diskFull(error) : diskFailed(error)
    }
  }

  function submit<Outcome>(change: SqliteChange, bytes = rowBytes): Promise<Outcome> {
    return batcher.submit({ change, bytes, arrivedAt: performance.now() })
  }

  /** Queues a write other than those of plants. */
  function call<Name extends keyof Writes>(
    name: Name,
    args: Parameters<Writes[Name]>,
    bytes?: number,
  ): Promise<ReturnType<Writes[Name]>> {
    return submit({ kind: 'call', name, args }, bytes)
  }

  return {
    ...buildPlantWrites(submit, newVersion),
    getPlant: (id) => read(() => plants.rows.find(id)),
    listPlants: async (query) => read(() => plants.list(query)),
    openSnapshot: limitSnapshots(async () => read(openSnapshot)),
    forgetKeys: (usedBefore) => call('forgetKeys', [usedBefore]),

    readJournal: async (after, limit) => read(() => journal.read(after, limit)),
    journalEnd: async () => read(journal.end),
    newestPosition: async () => read(journal.end),
    watchJournal: watch.add,
    trimJournal: (before) => call('trimJournal', [before]),
    measureJournal: async (after, upTo) => read(() => journal.measure(after, upTo)),
    dropChanges: (first, bytes) => call('dropChanges', [first, bytes]),

    addToken: (token) => call('addToken', [token]),
    addFirstToken: (token) => call('addFirstToken', [token]),
    findToken: async (hash) => read(() => tokens.find(hash)),
    listTokens: async () => read(tokens.list),
    revokeToken: (id, at) => call('revokeToken', [id, at]),
    deleteTokens: (ids) => call('deleteTokens', [ids]),
    noteTokenUses: (uses) => call('noteTokenUses', [uses]),
    tokenRevision: async () => read(tokens.revision),

    receivers: {
      add: (receiver) => call('addReceiver', [receiver]),
      list: async () => read(receivers.list),
      change: (id, change) => call('changeReceiver', [id, change]),
      remove: (id) => call('removeReceiver', [id]),
      revision: async () => read(receivers.revision),
      claim: (owner, leaseMs) => call('claimLeases', [owner, leaseMs, Date.now()]),
      release: (owner) => call('releaseLeases', [owner]),
      take: (owner, taken) => call('takeDeliveries', [owner, taken], countBytes(taken)),
      save: (owner, saved) => call('saveOutcomes', [owner, saved]),
      listDeliveries: async (...asked) => read(() => receivers.listDeliveries(...asked)),
      findBody: async (id, position) => read(() => receivers.findBody(id, position)),
      listBacklogs: async () => read(receivers.listBacklogs),
      retryFailures: (...args) => call('retryFailures', args),
      addDelivery: (id, delivery) => call('addDelivery', [id, delivery]),
    },

    isFull: batcher.isFull,

    ping: async () => read(() => void selectSchema.get()),

    async measure() {
      const { queuedItems: queuedWrites, ...measured } = batcher.measure()
      return { isUp: true, queuedWrites, ...measured, ...writer.measures, sizes: readSizes(db) }
    },

    async close() {
      await batcher.drain()
      await writer.close()
      // The last connection to close checkpoints and removes the WAL.
      db.close()
    },
  }
}

/** The memory that deliveries hold while they wait for their batch. */
function countBytes({ deliveries }: Taken): number {
  return deliveries.reduce((sum, { body }) => sum + rowBytes + body.length, rowBytes)
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
