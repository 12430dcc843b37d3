import { type BatcherBounds, buildBatcher, defaultBounds } from '../batcher.ts'
import { buildPlantWrites, buildWatch, type Change, type Outcome } from '../changes.ts'
import { unconfirmed, unreachable } from '../failures.ts'
import { buildJournalUpkeep } from '../journal-steps.ts'
import { buildReceiverStore } from '../receivers.ts'
import { limitSnapshots } from '../snapshots.ts'
import type { Run } from '../steps.ts'
import type { BatcherMeasures, Store, StoreMeasures, VersionedPlant } from '../store.ts'
import { buildTokenStore } from '../token-steps.ts'
import { toReadFailure, withTimeout } from './failures.ts'
import { buildHorizon } from './horizon.ts'
import { journalEnd, lastRow, newestPosition, readJournal } from './journal.ts'
import { listPlants, openSnapshot } from './pages.ts'
import {
  attemptWrite,
  findPlants,
  type PostgresWrite,
  sendWrites,
  type WaitingWrite,
} from './plants.ts'
import type { Primary } from './primary.ts'
import { lookUpConnections, type Session, writerCount } from './primary.ts'
import { buildLeasedWork } from './receivers.ts'
import { inTransaction, type Query, runSteps, type Sql } from './sql.ts'

const bounds: BatcherBounds = { ...defaultBounds, batchesInFlight: writerCount }
/** Gets that arrive together share a query, and a few queries are in flight at a time. */
const lookUpBounds: BatcherBounds = {
  ...defaultBounds,
  batchItems: 64,
  batchesInFlight: lookUpConnections,
}
const choreBounds: BatcherBounds = { batchItems: 1, queueItems: 1_000, batchesInFlight: 1 }
/** All who ask for the end of the journal during a wait share the next one. */
const endBounds: BatcherBounds = { batchItems: 2_000, queueItems: 2_000, batchesInFlight: 1 }
/** How often the deadlines of writes are checked. */
const checkMs = 50

interface LookUp {
  readonly id: bigint
  readonly arrivedAt: number
}

/** A write that is too rare to share a batch. */
interface Chore extends WaitingWrite {
  readonly run: (sql: Sql) => Promise<unknown>
}

/** Builds the store on a primary, which `close` closes. */
export function buildPostgresStore(
  primary: Primary,
  overrides: Partial<BatcherBounds> = {},
): Store {
  const { answerTimeoutMs } = primary
  const writes = buildBatcher(commitBatch, { ...bounds, ...overrides })
  const chores = buildBatcher(runChore, choreBounds)
  const lookUps = buildBatcher(lookUp, lookUpBounds)
  let checkTimer: NodeJS.Timeout | undefined
  const busyWriters = new Set<Sql>()
  const journal = buildJournalAccess(requireSession, answerTimeoutMs)

  function requireSession(): Session {
    const session = primary.session()
    if (session === undefined) throw unreachable()
    return session
  }

  async function read<Value>(
    lane: 'lookUps' | 'pages',
    run: (sql: Sql) => Promise<Value>,
    timeoutMs = answerTimeoutMs,
  ): Promise<Value> {
    return asRead(() => requireSession()[lane](run, timeoutMs))
  }

  async function lookUp(asked: LookUp[]): Promise<(VersionedPlant | undefined)[]> {
    // Counted from the arrival of the first, so that waits in the queue do not add up.
    const waitedMs = performance.now() - (asked[0]?.arrivedAt ?? 0)
    const ids = asked.map(({ id }) => id)
    const find = (sql: Sql) => findPlants(sql, ids)
    const found = await read('lookUps', find, answerTimeoutMs - waitedMs)
    return ids.map((id) => found.get(id))
  }

  async function commitBatch(batch: PostgresWrite[]): Promise<unknown[]> {
    const writer = requireSession().writers.find((candidate) => !busyWriters.has(candidate))
    if (writer === undefined) throw unreachable()
    // The callers of abandoned writes were told that nothing was stored.
    const sent = batch.filter(({ state }) => state !== 'given up')
    for (const write of sent) write.state = 'sent'
    busyWriters.add(writer)
    try {
      const outcomes = await confirm(writer, () => sendWrites(writer, sent))
      journal.wake()
      return batch.map((write) => outcomes.get(write))
    } finally {
      busyWriters.delete(writer)
    }
  }

  async function runChore([chore]: Chore[]): Promise<unknown[]> {
    const { chores: writer } = requireSession()
    if (chore === undefined || chore.state === 'given up') return []
    chore.state = 'sent'
    return [await confirm(writer, () => chore.run(writer))]
  }

  function submit<Write extends WaitingWrite, Outcome>(
    queue: { submit<Value>(write: Write): Promise<Value> },
    write: Write,
  ): Promise<Outcome> {
    if (primary.session() === undefined) return Promise.reject(unreachable())
    checkTimer ??= setInterval(giveUpLate, checkMs)
    return queue.submit(write)
  }

  function write<One extends Change>(change: One): Promise<Outcome<One>> {
    return submit(writes, { change, arrivedAt: performance.now(), state: 'waiting' })
  }

  function writeAlone<Value>(run: (sql: Sql) => Promise<Value>): Promise<Value> {
    return submit(chores, { run, arrivedAt: performance.now(), state: 'waiting' })
  }

  /** One shared timer: a timer and a promise per write would add a tenth to a create. */
  function giveUpLate(): void {
    const arrivedBefore = performance.now() - answerTimeoutMs
    const giveUp = (waiting: WaitingWrite) => {
      if (waiting.arrivedAt > arrivedBefore || waiting.state === 'given up') return undefined
      const reason = waiting.state === 'sent' ? unconfirmed() : unreachable()
      waiting.state = 'given up'
      return reason
    }
    const isAnyLeft = [writes.giveUp(giveUp), chores.giveUp(giveUp)].includes(true)
    if (isAnyLeft) return
    clearInterval(checkTimer)
    checkTimer = undefined
  }

  const readSteps: Run = (operation) => read('lookUps', (sql) => runSteps(sql, operation()))
  const writeSteps: Run = (operation) =>
    writeAlone((sql) => inTransaction(sql, () => runSteps(sql, operation())))

  return {
    ...buildPlantWrites(write),
    getPlant: (id) => lookUps.submit({ id, arrivedAt: performance.now() }),
    listPlants: (query) => read('pages', (sql) => listPlants(sql, query)),
    openSnapshot: limitSnapshots(async () => openSnapshot(requireSession(), answerTimeoutMs)),

    readJournal: journal.read,
    journalEnd: journal.end,
    newestPosition: () => read('pages', newestPosition),
    watchJournal: journal.watch,
    journalSession: primary.session,

    ...buildJournalUpkeep(readSteps, writeSteps),
    ...buildTokenStore(readSteps, writeSteps),
    receivers: buildReceiverStore(readSteps, writeSteps, buildLeasedWork(writeAlone)),
    isFull: writes.isFull,
    measure: () => measureStore(primary.session(), writes.measure()),

    async ping() {
      // The heartbeat of the session checks the server every 250 ms.
      requireSession()
    },

    async close() {
      // A hanging commit, whose callers have timed out, must not delay the shutdown.
      await withTimeout(writes.drain(), answerTimeoutMs).catch(() => {})
      await primary.close()
    },
  }
}

/** Runs a write again after a conflict, and throws if the server has warned of its commit. */
async function confirm<Value>(writer: Sql, run: () => Promise<Value>): Promise<Value> {
  const warningsBefore = writer.warnings()
  const value = await attemptWrite(run)
  if (writer.warnings() !== warningsBefore) throw unconfirmed()
  return value
}

async function asRead<Value>(run: () => Promise<Value>): Promise<Value> {
  try {
    return await run()
  } catch (error) {
    throw toReadFailure(error)
  }
}

type ServerMeasures = Pick<StoreMeasures, 'sizes' | 'fsyncSeconds'>

/** A scrape does not wait longer than this for the server, and omits its part. */
const serverTimeoutMs = 1_000
const unknown: ServerMeasures = { sizes: [], fsyncSeconds: undefined }
/** From this version on, the server counts syncs of the WAL with all other I/O. */
const countsAllIo = 180_000

async function measureStore(
  session: Session | undefined,
  measured: BatcherMeasures,
): Promise<StoreMeasures> {
  const server = session?.lookUps(askServer, serverTimeoutMs).catch(() => unknown)
  return {
    isUp: session !== undefined,
    ...measured,
    // Each batch is one commit on the server, so its duration is that of the commit.
    commitSeconds: measured.batchSeconds,
    ...((await server) ?? unknown),
  }
}

/**
 * The size of all tables with their indexes, which the server takes from its file system without
 * reading rows, and the syncs of the WAL, if it times them.
 */
async function askServer(sql: Sql): Promise<ServerMeasures> {
  const [row] = await sql<[{ bytes: string; is_timed: boolean; version: string }]>`
    SELECT pg_catalog.sum(pg_catalog.pg_total_relation_size(oid)) AS bytes,
           pg_catalog.current_setting('track_wal_io_timing') = 'on' AS is_timed,
           pg_catalog.current_setting('server_version_num') AS version
    FROM pg_catalog.pg_class
    WHERE relnamespace = 'plant_store'::regnamespace AND relkind = 'r'`
  return {
    sizes: [['data', Number(row.bytes)]],
    fsyncSeconds: row.is_timed ? await readSyncs(sql, Number(row.version)) : undefined,
  }
}

/** The number and total duration of syncs, as a histogram without bounds. */
async function readSyncs(sql: Sql, version: number) {
  const statement =
    version >= countsAllIo
      ? `SELECT pg_catalog.sum(fsyncs) AS syncs, pg_catalog.sum(fsync_time) AS ms
          FROM pg_catalog.pg_stat_io WHERE object = 'wal'`
      : 'SELECT wal_sync AS syncs, wal_sync_time AS ms FROM pg_catalog.pg_stat_wal'
  const [row] = await sql.run<[{ syncs: string; ms: number }]>(statement)
  return { bounds: [], counts: [Number(row.syncs)], sum: row.ms / 1000 }
}

type JournalReads = Pick<Store, 'readJournal' | 'journalEnd'>

/** How often a watched journal is polled for commits of other processes. */
const pollMs = 200

function buildJournalAccess(requireSession: () => Session, answerTimeoutMs: number) {
  const watch = buildWatch(() => requireSession().lookUps(lastRow, answerTimeoutMs), pollMs)
  const journals = new WeakMap<Session, JournalReads>()

  /** Each session has its own horizon, because a new primary may lack what the old one had. */
  function ofSession(): JournalReads {
    const session = requireSession()
    const journal = journals.get(session) ?? buildReads(session)
    journals.set(session, journal)
    return journal
  }

  function buildReads({ pages }: Session): JournalReads {
    const horizon = buildHorizon(watch.wake)
    /** Runs each statement as a read of its own, so that no connection waits between two. */
    const newQuery = (): Query => {
      const endsAt = performance.now() + answerTimeoutMs
      return (parts, ...values) => pages((sql) => sql(parts, ...values), endsAt - performance.now())
    }
    // Callers join the next run, not the current one: that may return a position before a change
    // that was acknowledged since it began.
    const ends = buildBatcher(async (callers: undefined[]) => {
      const end = await journalEnd(newQuery(), horizon)
      return callers.map(() => end)
    }, endBounds)
    return {
      readJournal: (after, limit) => readJournal(newQuery(), horizon, after, limit),
      journalEnd: () => ends.submit(undefined),
    }
  }

  return {
    read: (...place: Parameters<Store['readJournal']>) =>
      asRead(() => ofSession().readJournal(...place)),
    // A run that is under way ends first.
    end: () => asRead(() => withTimeout(ofSession().journalEnd(), answerTimeoutMs)),
    watch: watch.add,
    wake: watch.wake,
  }
}
