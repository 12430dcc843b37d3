import { type BatcherBounds, buildBatcher, defaultBounds } from '../batcher.ts'
import type { Change, Outcome } from '../changes.ts'
import { unconfirmed, unreachable } from '../failures.ts'
import { rowBytes } from '../held-bytes.ts'
import { buildPlantWrites } from '../plant-writes.ts'
import { limitSnapshots } from '../snapshots.ts'
import type { Store, Version } from '../store.ts'
import { randomVersion } from '../version.ts'
import { attemptWrite } from './attempts.ts'
import { type PostgresWrite, sendWrites, takeFirst } from './batches.ts'
import type { Connection } from './connection.ts'
import { buildFeed } from './feed.ts'
import { trimJournal } from './journal.ts'
import { measureStore } from './measures.ts'
import { listIds, listPlants } from './pages.ts'
import { forgetKeys } from './plants.ts'
import type { Sql } from './pools.ts'
import { buildReads } from './reads.ts'
import { buildReceiverStore } from './receivers.ts'
import { type Session, writerCount } from './session.ts'
import { openSnapshot } from './snapshot.ts'
import { withTimeout } from './timeout.ts'
import { tokenStatements } from './tokens.ts'

const bounds: BatcherBounds = { ...defaultBounds, batchesInFlight: writerCount }
/** How long a caller waits for the store, from the arrival of its request. */
const defaultAnswerTimeoutMs = 5_000
/** How often writes are checked for their time. */
const checkMs = 50

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
  const { read, getPlant } = buildReads(connection, answerTimeoutMs)
  let checkTimer: NodeJS.Timeout | undefined
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
    const sent = takeFirst(live)
    const next = live[sent.length]
    for (const write of sent) write.state = 'sent'
    const warningsBefore = session.warnings()
    const outcomes = await attempt(session, () => sendWrites(writer, sent))
    feed.wake()
    if (session.warnings() !== warningsBefore) throw unconfirmed()
    const done = next === undefined ? batch : batch.slice(0, batch.indexOf(next))
    return done.map((write) => outcomes.get(write))
  }

  function attempt<Value>(session: Session, run: () => Promise<Value>): Promise<Value> {
    return attemptWrite(run, (reason) => connection.giveUp(session, reason))
  }

  function write<One extends Change>(change: One, bytes = rowBytes): Promise<Outcome<One>> {
    if (connection.session() === undefined) return Promise.reject(unreachable())
    checkTimer ??= setInterval(giveUpLate, checkMs)
    return writes.submit({ change, bytes, arrivedAt: performance.now(), state: 'waiting' })
  }

  /** One timer for all: a timer and a promise for each write would cost a tenth of a create. */
  function giveUpLate(): void {
    const arrivedBefore = performance.now() - answerTimeoutMs
    const isAnyLeft = writes.giveUp((waiting) => {
      if (waiting.arrivedAt > arrivedBefore || waiting.state === 'given up') return undefined
      const reason = waiting.state === 'sent' ? unconfirmed() : unreachable()
      waiting.state = 'given up'
      return reason
    })
    if (isAnyLeft) return
    clearInterval(checkTimer)
    checkTimer = undefined
  }

  /** A write that is rare enough to need no batch. */
  async function writeAlone<Value>(run: (sql: Sql) => Promise<Value>): Promise<Value> {
    const session = connection.session()
    if (session === undefined) throw unreachable()
    return attempt(session, () => session.chores.run(run, answerTimeoutMs))
  }

  return {
    ...buildPlantWrites(write, newVersion),
    getPlant,
    listPlants: (query, caller) => read('pages', (sql) => listPlants(sql, query), caller),
    listIds: (query, caller) => read('pages', (sql) => listIds(sql, query), caller),

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

    receivers: buildReceiverStore((run) => read('lookUps', run), writeAlone),
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
