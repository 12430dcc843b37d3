import { type BatcherBounds, buildBatcher, defaultBounds } from '../batcher.ts'
import type { Change, Outcome } from '../changes.ts'
import { unconfirmed, unreachable } from '../failures.ts'
import { buildJournalUpkeep } from '../journal-steps.ts'
import { buildPlantWrites, randomVersion } from '../plant-writes.ts'
import { buildReceiverStore } from '../receiver-steps.ts'
import { limitSnapshots } from '../snapshots.ts'
import type { Run } from '../steps.ts'
import type { BatcherMeasures, Store, StoreMeasures, Version, VersionedPlant } from '../store.ts'
import { buildTokenStore } from '../token-steps.ts'
import { buildWatch } from '../watch.ts'
import { toReadFailure, withTimeout } from './failures.ts'
import { buildHorizon } from './horizon.ts'
import { journalEnd, lastRow, newestPosition, readJournal, shareRuns } from './journal.ts'
import { toQuery } from './lane.ts'
import { listPlants } from './pages.ts'
import { findPlants } from './plants.ts'
import type { Primary } from './primary.ts'
import { buildLeasedWork } from './receivers.ts'
import { lookUpConnections, type Session, writerCount } from './session.ts'
import { openSnapshot } from './snapshot.ts'
import { inTransaction, type Sql } from './sql.ts'
import { runSteps } from './steps.ts'
import { attemptWrite, type PostgresWrite, sendWrites } from './writes.ts'

const bounds: BatcherBounds = { ...defaultBounds, batchesInFlight: writerCount }
/** Gets that arrive together share a query, and a few queries are in flight at a time. */
const lookUpBounds: BatcherBounds = {
  ...defaultBounds,
  batchItems: 64,
  batchesInFlight: lookUpConnections,
}
/** How often the deadlines of writes are checked. */
const checkMs = 50

/** Settings for tests and benchmarks. */
export interface PostgresOptions extends Partial<BatcherBounds> {
  readonly newVersion?: () => Version
}

interface LookUp {
  readonly id: bigint
  readonly arrivedAt: number
}

/** Builds the store on a primary, which `close` closes. */
export function buildPostgresStore(primary: Primary, options: PostgresOptions = {}): Store {
  const { newVersion = randomVersion, ...overrides } = options
  const { answerTimeoutMs } = primary
  const writes = buildBatcher(commitBatch, { ...bounds, ...overrides })
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
    return asRead(() => requireSession()[lane].run(run, timeoutMs))
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
    const session = requireSession()
    const writer = session.writers.find((candidate) => !busyWriters.has(candidate))
    if (writer === undefined) throw unreachable()
    busyWriters.add(writer)
    try {
      return await sendBatch(writer, batch)
    } finally {
      busyWriters.delete(writer)
    }
  }

  async function sendBatch(writer: Sql, batch: PostgresWrite[]) {
    // The callers of abandoned writes were told that nothing was stored.
    const sent = batch.filter(({ state }) => state !== 'given up')
    for (const write of sent) write.state = 'sent'
    const warningsBefore = writer.warnings()
    const outcomes = await attemptWrite(() => sendWrites(writer, sent))
    journal.wake()
    if (writer.warnings() !== warningsBefore) throw unconfirmed()
    return batch.map((write) => outcomes.get(write))
  }

  function write<One extends Change>(change: One): Promise<Outcome<One>> {
    if (primary.session() === undefined) return Promise.reject(unreachable())
    checkTimer ??= setInterval(giveUpLate, checkMs)
    return writes.submit({ change, arrivedAt: performance.now(), state: 'waiting' })
  }

  /** One shared timer: a timer and a promise per write would add a tenth to a create. */
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

  /** Runs a write that is too rare to be batched. */
  async function writeAlone<Value>(run: (sql: Sql) => Promise<Value>): Promise<Value> {
    const { chores } = requireSession()
    const runConfirmed = async (sql: Sql) => {
      const warningsBefore = sql.warnings()
      const value = await run(sql)
      if (sql.warnings() !== warningsBefore) throw unconfirmed()
      return value
    }
    return attemptWrite(() => chores.run(runConfirmed, answerTimeoutMs))
  }

  const readSteps: Run = (operation) => read('lookUps', (sql) => runSteps(sql, operation()))
  const writeSteps: Run = (operation) =>
    writeAlone((sql) => inTransaction(sql, () => runSteps(sql, operation())))

  return {
    ...buildPlantWrites(write, newVersion),
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
  { queuedItems: queuedWrites, ...measured }: BatcherMeasures,
): Promise<StoreMeasures> {
  const server = session?.lookUps.run(askServer, serverTimeoutMs).catch(() => unknown)
  return {
    isUp: session !== undefined,
    queuedWrites,
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
/** When followers read again after they met a row that had not settled. */
const unsettledMs = 10

function buildJournalAccess(requireSession: () => Session, answerTimeoutMs: number) {
  const watch = buildWatch(() => requireSession().lookUps.run(lastRow, answerTimeoutMs), pollMs)
  const journals = new WeakMap<Session, JournalReads>()

  /** Each session has its own horizon, because a new primary may lack what the old one had. */
  function ofSession(): JournalReads {
    const session = requireSession()
    const journal = journals.get(session) ?? buildReads(session)
    journals.set(session, journal)
    return journal
  }

  function buildReads({ pages }: Session): JournalReads {
    const horizon = buildHorizon(() => watch.wakeIn(unsettledMs))
    const newQuery = () => toQuery(pages, answerTimeoutMs)
    return {
      readJournal: (after, limit) => readJournal(newQuery(), horizon, after, limit),
      journalEnd: shareRuns(() => journalEnd(newQuery(), horizon)),
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
