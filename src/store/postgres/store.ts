import { setTimeout as sleep } from 'node:timers/promises'
import {
  buildGroupCommit,
  type GroupCommitBounds,
  standardBounds,
  type Write,
} from '../group-commit.ts'
import { type Step, toCreate, toCreateOnce, toRemove, toReplace } from '../steps.ts'
import type { CreateKey, Store, Version, VersionedPlant } from '../store.ts'
import { randomVersion } from '../version.ts'
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
import { findPlant, forgetKeys, listIds, listPlants, loadRows, toBytes, unnest } from './plants.ts'
import { inTransaction, type Session, type Sql, withTimeout, writerCount } from './session.ts'
import { tokenStatements } from './tokens.ts'

interface PostgresWrite extends Write {
  readonly id: bigint
  readonly step: Step<unknown>
  readonly key?: CreateKey
  /** The plant of a create without conditions and keys: a batch of those is one statement. */
  readonly plain?: VersionedPlant
  /** What the caller was told when its time was over decides what may still be done with the write. */
  state: 'waiting' | 'sent' | 'given up'
}

const bounds: GroupCommitBounds = { ...standardBounds, batchesInFlight: writerCount }
/** How long a caller waits for an answer of the store, from the arrival of its request. */
const standardAnswerTimeoutMs = 5_000
const mostAttempts = 5
const collisionPauseMs = 10

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

  async function sendBatch(session: Session, writer: Sql, writes: PostgresWrite[]) {
    // What a caller was told to be not stored must not be sent any more.
    const live = writes.filter(({ state }) => state !== 'given up')
    for (const write of live) write.state = 'sent'
    const warningsBefore = session.warnings()
    const send = live.every(({ plain }) => plain !== undefined) ? createAll : runAll
    const outcomes = await attempt(session, () => send(writer, live))
    if (session.warnings() !== warningsBefore) throw unconfirmed()
    return writes.map((write) => outcomes.get(write))
  }

  async function attempt<Value>(session: Session, run: () => Promise<Value>): Promise<Value> {
    for (let count = 1; ; count++) {
      try {
        return await run()
      } catch (error) {
        if (isCollision(error) && count < mostAttempts) {
          // Those that collided shall not meet again at once.
          await sleep(Math.random() * count * collisionPauseMs)
          continue
        }
        const isUseless = isUnwritable(error) || (isLoss(error) && !isTimeout(error))
        if (isUseless) connection.giveUp(session, error)
        throw toWriteFailure(error)
      }
    }
  }

  async function write<Outcome>(
    step: Step<Outcome>,
    parts: Pick<PostgresWrite, 'id' | 'bytes' | 'key' | 'plain'>,
  ): Promise<Outcome> {
    if (connection.session() === undefined) throw unreachable()
    const waiting: PostgresWrite = { ...parts, step, state: 'waiting' }
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(waiting.state === 'sent' ? unconfirmed() : unreachable())
        waiting.state = 'given up'
      }, answerTimeoutMs)
    })
    try {
      return await Promise.race([group.submit<Outcome>(waiting), timeout])
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

  /** A write that is rare enough to go by itself. */
  async function writeAlone<Value>(run: (sql: Sql) => Promise<Value>): Promise<Value> {
    const session = connection.session()
    if (session === undefined) throw unreachable()
    return attempt(session, () => withTimeout(run(session.reader), answerTimeoutMs))
  }

  return {
    createPlant(plant) {
      const versioned = { ...plant, version: newVersion() }
      const parts = { id: plant.id, bytes: toBytes(plant), plain: versioned }
      return write(toCreate(versioned), parts)
    },

    createPlantOnce(plant, key) {
      const step = toCreateOnce({ ...plant, version: newVersion() }, key)
      return write(step, { id: plant.id, bytes: toBytes(plant), key })
    },

    getPlant: (id) => read((sql) => findPlant(sql, id)),
    listPlants: (query) => read((sql) => listPlants(sql, query)),
    listIds: (query) => read((sql) => listIds(sql, query)),

    replacePlant(plant, condition) {
      const step = toReplace({ ...plant, version: newVersion() }, condition)
      return write(step, { id: plant.id, bytes: toBytes(plant) })
    },

    removePlant: (id, condition) =>
      write(toRemove(id, condition), { id, bytes: toBytes({ name: '' }) }),

    forgetKeys: (usedBefore) => writeAlone((sql) => forgetKeys(sql, usedBefore)),

    addToken: (token) => writeAlone((sql) => tokenStatements.add(sql, token)),
    addFirstToken: (token) => writeAlone((sql) => tokenStatements.addFirst(sql, token)),
    findToken: (hash) => read((sql) => tokenStatements.find(sql, hash)),
    listTokens: () => read(tokenStatements.list),
    revokeToken: (id, at) => writeAlone((sql) => tokenStatements.revoke(sql, id, at)),
    noteTokenUses: (uses) => writeAlone((sql) => tokenStatements.noteUses(sql, uses)),
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

type Outcomes = Map<PostgresWrite, unknown>

/** Plain creates: one statement, which is a transaction. The first of several with one id wins. */
async function createAll(sql: Sql, writes: PostgresWrite[]): Promise<Outcomes> {
  const firsts = new Map<bigint, PostgresWrite>()
  for (const write of writes) if (!firsts.has(write.id)) firsts.set(write.id, write)
  const taken = await insert(sql, [...firsts.values()])
  return new Map(
    writes.map((write) => {
      const isCreated = firsts.get(write.id) === write && !taken?.has(write.id)
      return [write, isCreated ? write.plain?.version : 'exists']
    }),
  )
}

/** Inserts plants, and answers the ids that were taken: mostly none, so the server names ids only when some were. */
async function insert(sql: Sql, writes: PostgresWrite[]): Promise<Set<bigint> | undefined> {
  if (writes.length === 0) return undefined
  const plants = writes.map(({ plain }) => plain as VersionedPlant)
  const [row] = await sql<[{ ids: string | null; inserted: string }]>`
    WITH inserted AS (
      INSERT INTO plant_store.plants (id, name, tag, version) SELECT * FROM ${unnest(sql, plants)}
      ON CONFLICT (id) DO NOTHING RETURNING id
    )
    SELECT CASE WHEN count(*) < ${plants.length}::bigint THEN string_agg(id::text, ',') END AS ids,
           count(*) AS inserted
    FROM inserted`
  if (Number(row.inserted) === plants.length) return undefined
  const inserted = new Set(row.ids?.split(','))
  return new Set(plants.map(({ id }) => id).filter((id) => !inserted.has(String(id))))
}

/** Any writes: the rows are locked and read, the steps run on them in memory, and what changed is written back. */
function runAll(sql: Sql, writes: PostgresWrite[]): Promise<Outcomes> {
  return inTransaction(sql, async () => {
    const ids = [...new Set(writes.map(({ id }) => id))]
    const keys = writes.flatMap(({ key }) => key ?? [])
    const rows = await loadRows(sql, ids, keys)
    const outcomes = new Map(writes.map((write) => [write, write.step(rows)]))
    await rows.save(sql)
    return outcomes
  })
}
