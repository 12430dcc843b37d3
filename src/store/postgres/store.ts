import { type Batched, type BatcherBounds, buildBatcher, defaultBounds } from '../batcher.ts'
import type { Change, Outcome } from '../changes.ts'
import { unconfirmed, unreachable } from '../failures.ts'
import { rowBytes } from '../held-bytes.ts'
import { buildPlantWrites } from '../plant-writes.ts'
import { limitSnapshots } from '../snapshots.ts'
import type { BatcherMeasures, Store, StoreMeasures, Version, VersionedPlant } from '../store.ts'
import { randomVersion } from '../version.ts'
import { buildWatch } from '../watch.ts'
import { toReadFailure, withTimeout } from './failures.ts'
import { buildHorizon, type Horizon } from './horizon.ts'
import { dropChanges, journalEnd, lastRow, measureJournal, trimJournal } from './journal.ts'
import { readJournal } from './journal-pages.ts'
import { listPlants } from './pages.ts'
import { findPlants, forgetKeys } from './plants.ts'
import type { Primary } from './primary.ts'
import { buildReceiverStore } from './receivers.ts'
import { lookUpConnections, type Session, writerCount } from './session.ts'
import { openSnapshot } from './snapshot.ts'
import type { Sql } from './sql.ts'
import { tokenStatements } from './tokens.ts'
import { attemptWrite, type PostgresWrite, sendWrites, takeSendable } from './writes.ts'

const bounds: BatcherBounds = { ...defaultBounds, batchesInFlight: writerCount }
/** Plants that are requested at the same time share a query, and a few queries run at a time. */
const lookUpBounds: BatcherBounds = {
  ...defaultBounds,
  batchItems: 64,
  batchesInFlight: lookUpConnections,
}
/** How often writes are checked for their time. */
const checkMs = 50

/** What tests and benchmarks may set. */
export interface PostgresOptions extends Partial<BatcherBounds> {
  readonly newVersion?: () => Version
}

interface LookUp extends Batched {
  readonly id: bigint
  readonly arrivedAt: number
}

/** The store on a primary, which it closes when it is closed. */
export function buildPostgresStore(primary: Primary, options: PostgresOptions = {}): Store {
  const { newVersion = randomVersion, ...overrides } = options
  const { answerTimeoutMs } = primary
  const writes = buildBatcher(commitBatch, { ...bounds, ...overrides })
  const lookUps = buildBatcher(lookUp, lookUpBounds)
  let checkTimer: NodeJS.Timeout | undefined
  const busyWriters = new Set<Sql>()
  const feed = buildFeed(primary, read)

  /** The connections, if there are any. */
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
    try {
      return await requireSession()[lane].run(run, timeoutMs)
    } catch (error) {
      throw toReadFailure(error)
    }
  }

  async function lookUp(asked: LookUp[]): Promise<(VersionedPlant | undefined)[]> {
    // Counted from the arrival of the first, so that a queue does not add up its waits.
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
      return await sendBatch(session, writer, batch)
    } finally {
      busyWriters.delete(writer)
    }
  }

  async function sendBatch(session: Session, writer: Sql, batch: PostgresWrite[]) {
    // The callers of the others got the answer that nothing was stored.
    const live = batch.filter(({ state }) => state !== 'given up')
    const sent = takeSendable(live)
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
    return attemptWrite(run, (reason) => primary.giveUp(session, reason))
  }

  function write<One extends Change>(change: One, bytes = rowBytes): Promise<Outcome<One>> {
    if (primary.session() === undefined) return Promise.reject(unreachable())
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
    const session = requireSession()
    return attempt(session, () => session.chores.run(run, answerTimeoutMs))
  }

  return {
    ...buildPlantWrites(write, newVersion),
    getPlant: (id) => lookUps.submit({ id, bytes: rowBytes, arrivedAt: performance.now() }),
    listPlants: (query) => read('pages', (sql) => listPlants(sql, query)),
    openSnapshot: limitSnapshots(async () => openSnapshot(requireSession(), answerTimeoutMs)),

    forgetKeys: (usedBefore) => writeAlone((sql) => forgetKeys(sql, usedBefore)),

    readJournal: feed.read,
    journalEnd: feed.end,
    watchJournal: feed.watch,
    trimJournal: (before) => writeAlone((sql) => trimJournal(sql, before)),
    measureJournal: (after, upTo) => read('pages', (sql) => measureJournal(sql, after, upTo)),
    dropChanges: (first, bytes) => writeAlone((sql) => dropChanges(sql, first, bytes)),

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
    measure: () => measureStore(primary.session(), writes.measure()),

    async ping() {
      // The session watches its server, so its presence is an answer 250 ms old at most.
      requireSession()
    },

    async close() {
      // The callers of a commit that hangs have given up. It must not delay the shutdown.
      await withTimeout(writes.drain(), answerTimeoutMs).catch(() => {})
      await primary.close()
    },
  }
}

type ServerMeasures = Pick<StoreMeasures, 'sizes' | 'fsyncSeconds'>

/** A scrape does not wait for a server that is slow: its part is left out then. */
const serverTimeoutMs = 1_000
const unknown: ServerMeasures = { sizes: [], fsyncSeconds: [] }
/** From this version on, the server counts syncs of its log with all other I/O. */
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
    // The server is asked to commit once for each batch, and nothing else is waited for.
    commitSeconds: [['server', measured.batchSeconds]],
    ...((await server) ?? unknown),
  }
}

/**
 * The size of all tables with their indexes, for which the server asks its file system and reads
 * no row, and the syncs of its log, if it times them.
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
    fsyncSeconds: row.is_timed ? [['server', await readSyncs(sql, Number(row.version))]] : [],
  }
}

/** How many syncs there were and how long all of them took: a histogram without bounds. */
async function readSyncs(sql: Sql, version: number) {
  const statement =
    version >= countsAllIo
      ? `SELECT pg_catalog.sum(fsyncs) AS syncs, pg_catalog.sum(fsync_time) AS ms
          FROM pg_catalog.pg_stat_io WHERE object = 'wal'`
      : 'SELECT wal_sync AS syncs, wal_sync_time AS ms FROM pg_catalog.pg_stat_wal'
  const [row] = await sql.run<[{ syncs: string; ms: number }]>(statement)
  return { bounds: [], counts: [Number(row.syncs)], sum: row.ms / 1000 }
}

type Read = <Value>(lane: 'lookUps' | 'pages', run: (sql: Sql) => Promise<Value>) => Promise<Value>

/** How often a watched journal is looked at for changes of other processes. */
const lookMs = 200
/** When a change that waits for one under way is looked at again. */
const unsettledMs = 10

/** The journal as its readers see it. */
export interface Feed {
  readonly read: Store['readJournal']
  readonly end: Store['journalEnd']
  readonly watch: Store['watchJournal']
  /** Tells watchers of a commit of this process. */
  wake(): void
}

function buildFeed(primary: Primary, read: Read): Feed {
  const watch = buildWatch(() => read('lookUps', lastRow), lookMs)
  const horizons = new WeakMap<Session, Horizon>()

  /** Each session learns anew what has settled: its server may have lost what another had. */
  async function withHorizon<Value>(
    run: (sql: Sql, horizon: Horizon) => Promise<Value>,
  ): Promise<Value> {
    const session = primary.session()
    if (session === undefined) throw unreachable()
    const horizon = horizons.get(session) ?? buildHorizon(() => watch.wakeIn(unsettledMs))
    horizons.set(session, horizon)
    return read('pages', (sql) => run(sql, horizon))
  }

  return {
    read: (after, limit) => withHorizon((sql, horizon) => readJournal(sql, horizon, after, limit)),
    end: () => withHorizon(journalEnd),
    watch: watch.add,
    wake: watch.wake,
  }
}
