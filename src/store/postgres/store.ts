import {
  type Batched,
  type BatcherBounds,
  buildBatcher,
  defaultBounds,
  rowBytes,
  toBytes,
} from '../batcher.ts'
import { type Change, type Outcome, toCreateOnce, toImport } from '../changes.ts'
import { unconfirmed, unreachable } from '../failures.ts'
import { limitSnapshots } from '../snapshots.ts'
import type { Store, Version, VersionedPlant } from '../store.ts'
import { randomVersion, toVersioned } from '../version.ts'
import { attemptWrite } from './attempts.ts'
import { type PostgresWrite, sendWrites } from './batches.ts'
import type { Connection } from './connection.ts'
import { toReadFailure } from './failures.ts'
import { buildFeed } from './feed.ts'
import { trimJournal } from './journal.ts'
import { measureStore } from './measures.ts'
import { listIds, listPlants } from './pages.ts'
import { findPlants, forgetKeys } from './plants.ts'
import type { Sql } from './pools.ts'
import { lookUpConnections, type Session, writerCount } from './session.ts'
import { openSnapshot } from './snapshot.ts'
import { withTimeout } from './timeout.ts'
import { tokenStatements } from './tokens.ts'

const bounds: BatcherBounds = { ...defaultBounds, batchesInFlight: writerCount }
/** Plants that are requested at the same time share a query, and a few queries run at a time. */
const lookUpBounds: BatcherBounds = {
  ...defaultBounds,
  batchItems: 64,
  batchesInFlight: lookUpConnections,
}
/** How long a caller waits for the store, from the arrival of its request. */
const defaultAnswerTimeoutMs = 5_000

interface LookUp extends Batched {
  readonly id: bigint
  readonly arrivedAt: number
}

/** What tests and benchmarks may set. */
export interface PostgresOptions extends Partial<BatcherBounds> {
  readonly answerTimeoutMs?: number
  readonly newVersion?: () => Version
}

/** The store on an open connection, which it closes when it is closed. */
export function buildPostgresStore(connection: Connection, options: PostgresOptions = {}): Store {
  const {
    answerTimeoutMs = defaultAnswerTimeoutMs,
    newVersion = randomVersion,
    ...overrides
  } = options
  const writes = buildBatcher(commitBatch, { ...bounds, ...overrides })
  const lookUps = buildBatcher(lookUp, lookUpBounds)
  const busyWriters = new Set<Sql>()
  const feed = buildFeed(connection, read)

  async function commitBatch(batch: PostgresWrite[]): Promise<unknown[]> {
    const session = connection.session()
    const writer = session?.writers.find((candidate) => !busyWriters.has(candidate))
    if (session === undefined || writer === undefined) throw unreachable()
    busyWriters.add(writer)
    try {
      return await sendBatch(session, writer, batch)
    } finally {
      busyWriters.delete(writer)
    }
  }

  async function sendBatch(session: Session, writer: Sql, batch: PostgresWrite[]) {
    // The callers of the others got the answer that nothing was stored.
    const live = batch.filter(({ state }) => state !== 'given up')
    for (const write of live) write.state = 'sent'
    const warningsBefore = session.warnings()
    const outcomes = await attempt(session, () => sendWrites(writer, live, connection.journaling))
    feed.wake()
    if (session.warnings() !== warningsBefore) throw unconfirmed()
    return batch.map((write) => outcomes.get(write))
  }

  function attempt<Value>(session: Session, run: () => Promise<Value>): Promise<Value> {
    return attemptWrite(run, (reason) => connection.giveUp(session, reason))
  }

  function write<One extends Change>(change: One, bytes = rowBytes): Promise<Outcome<One>> {
    return new Promise((resolve, reject) => {
      if (connection.session() === undefined) {
        reject(unreachable())
        return
      }
      const waiting: PostgresWrite = { change, bytes, state: 'waiting' }
      const timer = setTimeout(() => {
        reject(waiting.state === 'sent' ? unconfirmed() : unreachable())
        waiting.state = 'given up'
      }, answerTimeoutMs)
      const committed = writes.submit<Outcome<One>>(waiting)
      committed.then(resolve, reject).finally(() => clearTimeout(timer))
    })
  }

  function lookUp(asked: LookUp[]): Promise<(VersionedPlant | undefined)[]> {
    // Counted from the arrival of the first, so that a queue does not add up its waits.
    const waitedMs = performance.now() - (asked[0]?.arrivedAt ?? 0)
    const ids = asked.map(({ id }) => id)
    return read('lookUps', (sql) => findPlants(sql, ids), answerTimeoutMs - waitedMs)
  }

  async function read<Value>(
    lane: 'lookUps' | 'pages',
    run: (sql: Sql) => Promise<Value>,
    timeoutMs = answerTimeoutMs,
  ): Promise<Value> {
    const session = connection.session()
    if (session === undefined) throw unreachable()
    try {
      return await session[lane].run(run, timeoutMs)
    } catch (error) {
      throw toReadFailure(error)
    }
  }

  /** A write that is rare enough to need no batch. */
  async function writeAlone<Value>(run: (sql: Sql) => Promise<Value>): Promise<Value> {
    const session = connection.session()
    if (session === undefined) throw unreachable()
    return attempt(session, () => session.chores.run(run, answerTimeoutMs))
  }

  return {
    createPlant: (plant, tokenId) =>
      write({ kind: 'create', plant: toVersioned(plant, newVersion()), tokenId }, toBytes(plant)),
    createPlantOnce: (plant, key) =>
      write(toCreateOnce(toVersioned(plant, newVersion()), key), toBytes(plant)),
    getPlant: (id) => lookUps.submit({ id, bytes: rowBytes, arrivedAt: performance.now() }),
    listPlants: (query) => read('pages', (sql) => listPlants(sql, query)),
    listIds: (query) => read('pages', (sql) => listIds(sql, query)),
    replacePlant(plant, condition, tokenId) {
      const versioned = toVersioned(plant, newVersion())
      return write({ kind: 'replace', plant: versioned, condition, tokenId }, toBytes(plant))
    },
    deletePlant: (id, condition, tokenId) => write({ kind: 'delete', id, condition, tokenId }),
    importPlants(plants, onConflict, tokenId) {
      const bytes = plants.reduce((sum, plant) => sum + toBytes(plant), 0)
      return write(toImport(plants, onConflict, newVersion, tokenId), bytes)
    },

    openSnapshot: limitSnapshots(async () => {
      const session = connection.session()
      if (session === undefined) throw unreachable()
      return openSnapshot(session, answerTimeoutMs)
    }),

    forgetKeys: (usedBefore) => writeAlone((sql) => forgetKeys(sql, usedBefore)),

    readJournal: feed.read,
    journalEnd: feed.end,
    watchJournal: feed.watch,
    trimJournal: (before) => writeAlone((sql) => trimJournal(sql, before)),

    addToken: (token) => writeAlone((sql) => tokenStatements.add(sql, token)),
    addFirstToken: (token) => writeAlone((sql) => tokenStatements.addFirst(sql, token)),
    findToken: (hash) => read('lookUps', (sql) => tokenStatements.find(sql, hash)),
    listTokens: () => read('lookUps', tokenStatements.list),
    revokeToken: (id, at) => writeAlone((sql) => tokenStatements.revoke(sql, id, at)),
    deleteTokens: (ids) => writeAlone((sql) => tokenStatements.delete(sql, ids)),
    noteTokenUses: (uses) => writeAlone((sql) => tokenStatements.noteUses(sql, uses)),
    tokenRevision: () => read('lookUps', tokenStatements.revision),

    isFull: writes.isFull,
    measure: () => measureStore(connection.session(), writes.measure()),

    async ping() {
      // The session watches its server, so its presence is an answer 250 ms old at most.
      if (connection.session() === undefined) throw unreachable()
    },

    async close() {
      // The callers of a commit that hangs have given up. It must not delay the shutdown.
      await withTimeout(writes.drain(), answerTimeoutMs).catch(() => {})
      await connection.close()
    },
  }
}
