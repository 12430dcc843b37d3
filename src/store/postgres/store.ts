import { buildGroupCommit, type GroupCommitBounds, type Write } from '../group-commit.ts'
import type { Store, Version, VersionedPlant } from '../store.ts'
import { randomVersion } from '../version.ts'
import { toIntegerArray, toTextArray } from './arrays.ts'
import type { Connection } from './connection.ts'
import {
  isCollision,
  isLoss,
  isTimeout,
  isUnwritable,
  toReadFailure,
  toWriteFailure,
  unconfirmed,
  unreachable,
} from './failures.ts'
import { type Session, type Sql, withTimeout, writerCount } from './session.ts'
import { tokenStatements } from './tokens.ts'

interface PostgresWrite extends Write {
  readonly id: bigint
  readonly name: string
  readonly tag: string | null
  readonly version: Version
  /** What the caller was told when its time was over decides what may still be done with the write. */
  state: 'waiting' | 'sent' | 'given up'
}

interface PlantRow {
  readonly id: string
  readonly name: string
  readonly tag: string | null
  readonly version: string
}

const bounds: GroupCommitBounds = {
  batchWrites: 512,
  batchBytes: 8 * 1024 * 1024,
  queueWrites: 2_000,
  queueBytes: 64 * 1024 * 1024,
  batchesInFlight: writerCount,
}
/** How long a caller waits for an answer of the store, from the arrival of its request. */
const standardAnswerTimeoutMs = 5_000
const mostAttempts = 5
const rowBytes = 64

/** What tests and benchmarks may set otherwise. */
export interface PostgresStoreOptions extends Partial<GroupCommitBounds> {
  readonly answerTimeoutMs?: number
  readonly newVersion?: () => Version
}

/** The store on an open connection, which it closes when it is closed. */
export function buildPostgresStore(
  connection: Connection,
  options: PostgresStoreOptions = {},
): Store {
  const {
    answerTimeoutMs = standardAnswerTimeoutMs,
    newVersion = randomVersion,
    ...overrides
  } = options
  const group = buildGroupCommit(commitBatch, { ...bounds, ...overrides })
  const busyWriters = new Set<Sql>()

  async function commitBatch(writes: PostgresWrite[]): Promise<unknown[]> {
    const session = connection.session()
    const writer = session?.writers.find((candidate) => !busyWriters.has(candidate))
    if (session === undefined || writer === undefined) throw unreachable()
    busyWriters.add(writer)
    try {
      return await sendBatch(session, writer, writes)
    } finally {
      busyWriters.delete(writer)
    }
  }

  async function sendBatch(
    session: Session,
    writer: Sql,
    writes: PostgresWrite[],
  ): Promise<unknown[]> {
    const batch = toBatch(writes)
    const warningsBefore = session.warnings()
    const taken = await attempt(session, () => insert(writer, batch))
    if (session.warnings() !== warningsBefore) throw unconfirmed()
    const created = batch.length === writes.length && taken.size === 0 ? undefined : new Set(batch)
    for (const write of taken) created?.delete(write)
    return writes.map((write) => (created?.has(write) === false ? 'exists' : write.version))
  }

  async function attempt<Value>(session: Session, run: () => Promise<Value>): Promise<Value> {
    for (let count = 1; ; count++) {
      try {
        return await run()
      } catch (error) {
        if (isCollision(error) && count < mostAttempts) continue
        const isUseless = isUnwritable(error) || (isLoss(error) && !isTimeout(error))
        if (isUseless) connection.giveUp(session, error)
        throw toWriteFailure(error)
      }
    }
  }

  async function write(plant: PostgresWrite): Promise<Version | 'exists'> {
    if (connection.session() === undefined) throw unreachable()
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(plant.state === 'sent' ? unconfirmed() : unreachable())
        plant.state = 'given up'
      }, answerTimeoutMs)
    })
    try {
      return await Promise.race([group.submit<Version | 'exists'>(plant), timeout])
    } finally {
      clearTimeout(timer)
    }
  }

  async function read<Value>(run: (sql: Sql) => Promise<Value>): Promise<Value> {
    const session = connection.session()
    if (session === undefined) throw unreachable()
    try {
      return await withTimeout(run(session.reader), answerTimeoutMs)
    } catch (error) {
      throw toReadFailure(error)
    }
  }

  async function writeToken<Value>(run: (sql: Sql) => Promise<Value>): Promise<Value> {
    const session = connection.session()
    if (session === undefined) throw unreachable()
    return attempt(session, () => withTimeout(run(session.reader), answerTimeoutMs))
  }

  return {
    createPlant({ id, name, tag = null }) {
      const bytes = rowBytes + 2 * (name.length + (tag?.length ?? 0))
      return write({ id, name, tag, version: newVersion(), bytes, state: 'waiting' })
    },

    getPlant: (id) =>
      read(async (sql) => {
        const [row] = await sql<PlantRow[]>`
          SELECT id, name, tag, version FROM plant_store.plants WHERE id = ${String(id)}::bigint`
        return row && toPlant(row)
      }),

    addToken: (token) => writeToken((sql) => tokenStatements.add(sql, token)),
    addFirstToken: (token) => writeToken((sql) => tokenStatements.addFirst(sql, token)),
    findToken: (hash) => read((sql) => tokenStatements.find(sql, hash)),
    listTokens: () => read(tokenStatements.list),
    revokeToken: (id, at) => writeToken((sql) => tokenStatements.revoke(sql, id, at)),
    noteTokenUses: (uses) => writeToken((sql) => tokenStatements.noteUses(sql, uses)),
    tokenRevision: () => read(tokenStatements.revision),

    isFull: group.isFull,

    async ping() {
      // The session watches its server all the time: that it is there is an answer a quarter of a second old.
      if (connection.session() === undefined) throw unreachable()
    },

    async close() {
      // A commit that hangs has been given up by its callers; it does not keep the service from ending.
      await withTimeout(group.drain(), answerTimeoutMs).catch(() => {})
      await connection.close()
    },
  }
}

/** The writes to send: the first for each id, in the order of ids, so that two batches never lock each other out. */
function toBatch(writes: PostgresWrite[]): PostgresWrite[] {
  const firsts = new Map<bigint, PostgresWrite>()
  for (const write of writes) {
    if (write.state === 'given up' || firsts.has(write.id)) continue
    write.state = 'sent'
    firsts.set(write.id, write)
  }
  return [...firsts.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** Inserts a batch and answers the writes that found their id taken: mostly none, so the server names only those. */
async function insert(sql: Sql, batch: PostgresWrite[]): Promise<Set<PostgresWrite>> {
  if (batch.length === 0) return new Set()
  const ids = toIntegerArray(batch.map(({ id }) => id))
  const names = toTextArray(batch.map(({ name }) => name))
  const tags = toTextArray(batch.map(({ tag }) => tag))
  const versions = toIntegerArray(batch.map(({ version }) => version))
  const [row] = await sql<[{ inserted: string; ids: string | null }]>`
    WITH inserted AS (
      INSERT INTO plant_store.plants (id, name, tag, version)
      SELECT * FROM unnest(${ids}::bigint[], ${names}::text[], ${tags}::text[], ${versions}::bigint[])
      ON CONFLICT (id) DO NOTHING RETURNING id
    )
    SELECT CASE WHEN count(*) < ${batch.length}::bigint THEN string_agg(id::text, ',') END AS ids,
           count(*) AS inserted
    FROM inserted`
  if (Number(row.inserted) === batch.length) return new Set()
  const inserted = new Set(row.ids?.split(','))
  return new Set(batch.filter(({ id }) => !inserted.has(String(id))))
}

function toPlant(row: PlantRow): VersionedPlant {
  const plant = { id: BigInt(row.id), name: row.name, version: BigInt(row.version) }
  return row.tag === null ? plant : { ...plant, tag: row.tag }
}
