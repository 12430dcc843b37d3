import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { Failure } from '../../contract/errors.ts'
import { type BatcherBounds, buildBatcher, defaultBounds } from '../batcher.ts'
import { diskFailed, diskFull } from '../failures.ts'
import { buildPlantWrites, randomVersion, rowBytes } from '../plant-writes.ts'
import type { Taken } from '../receivers.ts'
import { limitSnapshots } from '../snapshots.ts'
import type { Journaling, Store, StoreMeasures, Version } from '../store.ts'
import { buildWatch } from '../watch.ts'
import { requireSyncs } from './connection.ts'
import { isOutOfSpace, toRefusal } from './failures.ts'
import { setJournaling } from './journal.ts'
import { openReserve, type Reserve, spend } from './reserve.ts'
import {
  buildStatements,
  isOwn,
  type ReceiverWrites,
  type SqliteChange,
  type SqliteOutcome,
} from './transactions.ts'
import { boundWal, defaultWalBounds, type WalBounds } from './wal-bound.ts'
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
  readonly reserve?: Reserve
}

/** Builds the store on an open connection, which `close` closes. */
export function buildSqliteStore(db: DatabaseSync, options: SqliteStoreOptions = {}): Store {
  const {
    lockTimeoutMs = defaultLockTimeoutMs,
    newVersion = randomVersion,
    writer: location = 'adaptive',
    wal = defaultWalBounds,
    journaling = 'as before',
    reserve = openReserve(db.location()),
    ...overrides
  } = options
  const selectSchema = db.prepare('PRAGMA schema_version')
  const statements = buildStatements(db)
  const { plants, tokens, receivers, journal } = statements
  setJournaling(db, journal, journaling, reserve)
  const writer = openWriter(db, statements, { location, lockTimeoutMs })
  const rescue = buildRescue(db, reserve, writer.commitInPlace)
  const openSnapshot = boundWal(db, wal)
  // Changes with every commit of another connection, and only reads memory.
  const selectCommits = db.prepare('PRAGMA data_version')
  const watch = buildWatch(() => selectCommits.get()?.data_version, pollMs)
  const batcher = buildBatcher(commit, { ...bounds, ...overrides }, writer.commitDelayMs)
  let isProved = false

  function commit(batch: readonly SqliteWrite[]): unknown[] | Promise<unknown[]> {
    if (!isProved) prove()
    const outcomes = commitOrRescue(batch)
    // Tokens, leases and deliveries are not in the journal.
    if (batch.every(({ change }) => isOwn(change))) return outcomes
    if (outcomes instanceof Promise) return outcomes.finally(watch.wake)
    watch.wake()
    return outcomes
  }

  /** Proves that commits are synced before the first one. */
  function prove(): void {
    try {
      requireSyncs(db)
      isProved = true
    } catch (error) {
      throw isOutOfSpace(error) ? diskFull(error) : diskFailed(error)
    }
  }

  function commitOrRescue(batch: readonly SqliteWrite[]): unknown[] | Promise<unknown[]> {
    try {
      const outcomes = writer.commit(batch)
      if (!(outcomes instanceof Promise)) return outcomes
      return outcomes.catch((error) => rescue(batch, error))
    } catch (error) {
      return rescue(batch, error)
    }
  }

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

  function writeReceivers<Name extends keyof ReceiverWrites>(
    name: Name,
    args: Parameters<ReceiverWrites[Name]>,
    bytes = rowBytes,
  ): Promise<ReturnType<ReceiverWrites[Name]>> {
    const outcome = write({ kind: 'write receivers', write: name, args }, bytes)
    return outcome as Promise<ReturnType<ReceiverWrites[Name]>>
  }

  return {
    ...buildPlantWrites(write, newVersion),
    getPlant: (id) => read(() => plants.rows.find(id)),
    listPlants: async (query) => read(() => plants.list(query)),
    readFollowed: async () => read(plants.followed),
    openSnapshot: limitSnapshots(async () => read(openSnapshot)),
    forgetKeys: (usedBefore) => write({ kind: 'forget keys', usedBefore }),

    readJournal: async (after, limit) => read(() => journal.read(after, limit)),
    journalEnd: async () => read(journal.end),
    watchJournal: watch.add,
    async trimJournal(before) {
      const isDone = await write({ kind: 'trim journal', before })
      // Only services trim. The trim may have used the reserve, or have made room for it.
      if (isDone) reserve.restock()
      return isDone
    },
    measureJournal: async (after, upTo) => read(() => journal.measure(after, upTo)),
    dropChanges: (first, bytes) => write({ kind: 'drop changes', first, bytes }),

    addToken: (token) => write({ kind: 'add token', token }),
    addFirstToken: (token) => write({ kind: 'add first token', token }),
    findToken: async (hash) => read(() => tokens.find(hash)),
    listTokens: async () => read(tokens.list),
    revokeToken: (id, at) => write({ kind: 'revoke token', id, at }),
    deleteTokens: (ids) => write({ kind: 'delete tokens', ids }),
    noteTokenUses: (uses) => write({ kind: 'note token uses', uses }),
    tokenRevision: async () => read(tokens.revision),

    receivers: {
      add: (receiver) => writeReceivers('add', [receiver]),
      list: async () => read(receivers.list),
      change: (id, change) => writeReceivers('change', [id, change]),
      remove: (id) => writeReceivers('remove', [id]),
      revision: async () => read(receivers.revision),
      claim: (owner, leaseMs) => writeReceivers('claim', [owner, leaseMs, Date.now()]),
      release: (owner) => writeReceivers('release', [owner]),
      take: (owner, taken) => writeReceivers('take', [owner, taken], countBytes(taken)),
      save: (owner, saved) => writeReceivers('save', [owner, saved]),
      listDeliveries: async (...asked) => read(() => receivers.listDeliveries(...asked)),
      findBody: async (id, position) => read(() => receivers.findBody(id, position)),
      listBacklogs: async () => read(receivers.listBacklogs),
      retryFailures: (id, dueAt) => writeReceivers('retryFailures', [id, dueAt]),
      addDelivery: (id, delivery) => writeReceivers('addDelivery', [id, delivery]),
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
function countBytes(taken: readonly Taken[]): number {
  let bytes = 0
  for (const { deliveries } of taken) {
    for (const { body } of deliveries) bytes += rowBytes + body.length
  }
  return bytes
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

// A missing file, such as a WAL that does not exist yet, counts as empty.
function readSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** Writes that end tokens may use all of the reserve. */
const endTokens: readonly SqliteChange['kind'][] = ['revoke token', 'delete tokens']
/** Writes that free space in the database leave a part of the reserve to the others. */
const makeRoom: readonly SqliteChange['kind'][] = [
  'delete',
  'trim journal',
  'drop changes',
  'forget keys',
]
/** Enough for some dozens of revocations. */
const keptForTokens = 256 * 1024

/**
 * Handles a failed batch. If the disk is full, it commits the writes that may use the reserve, and
 * fails the others.
 *
 * On a full disk a commit fails when it appends to the WAL, and so does a delete: the WAL grows
 * until a checkpoint has copied it into the database, which has no room to grow either. The reserve
 * gives writes that free space or end a token the room to be appended. If the whole WAL then fits
 * into the database, a checkpoint follows, and later writes reuse the WAL and the freed pages.
 */
function buildRescue(
  db: DatabaseSync,
  reserve: Reserve,
  commit: (batch: readonly SqliteWrite[]) => unknown[] | Promise<unknown[]>,
) {
  return async (batch: readonly SqliteWrite[], failure: unknown): Promise<unknown[]> => {
    if (!(failure instanceof Failure) || failure.number !== 50700) throw failure
    const size = reserve.size()
    const kinds = size > keptForTokens ? [...endTokens, ...makeRoom] : endTokens
    let rest = batch.filter(({ change }) => kinds.includes(change.kind))
    if (size === 0 || rest.length === 0) throw failure
    const outcomes = new Map<SqliteWrite, unknown>()
    let later: unknown
    const end = spend(db, reserve)
    try {
      while (rest.length > 0) {
        const made = await commit(rest)
        for (const [index, outcome] of made.entries()) {
          outcomes.set(rest[index] as SqliteWrite, outcome)
        }
        rest = rest.slice(made.length)
      }
    } catch (error) {
      if (outcomes.size === 0) throw error
      later = error
    } finally {
      end()
    }
    // What failed later may be stored: a failed sync, unlike a full disk, does not tell.
    const toOutcome = (write: SqliteWrite) => (rest.includes(write) ? later : failure)
    return batch.map((write) => (outcomes.has(write) ? outcomes.get(write) : toOutcome(write)))
  }
}
