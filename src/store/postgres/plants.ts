import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '../../contract/limits.ts'
import type { StoredPlant } from '../../contract/shapes.ts'
import type { JournalRow } from '../../journal/row.ts'
import { buildRecorder, type Change, type KeyUse, type Rows, toVersioned } from '../changes.ts'
import type { CreateKey, VersionedPlant } from '../store.ts'
import { codeOf, isConflict, StaleRows, toWriteFailure } from './failures.ts'
import { inTransaction, type Sql, type Value } from './sql.ts'

/** A plant, and the other selected columns. */
export type PlantRow<Others extends string[] = []> = readonly [
  id: string,
  name: string,
  tag: string | null,
  ...Others,
]
export type VersionedRow = PlantRow<[version: string]>

type KeyRow = Omit<KeyUse, 'version' | 'usedAt'> & { readonly version: string; usedAt: string }

/** The plants that exist among these ids. */
export async function findPlants(
  sql: Sql,
  ids: readonly bigint[],
): Promise<ReadonlyMap<bigint, VersionedPlant>> {
  const statement = `
    SELECT id, name, tag, version FROM plant_store.plants WHERE id = ANY($1::bigint[])`
  return toPlantsById(await sql.texts<VersionedRow>(statement, [ids]))
}

/** A write that waits for its connection. */
export interface WaitingWrite {
  readonly arrivedAt: number
  /** A write whose caller has timed out must not be sent any more. */
  state: 'waiting' | 'sent' | 'given up'
}

/** A change that waits for its batch. */
export interface PostgresWrite extends WaitingWrite {
  readonly change: Change
}

type Outcomes = Map<PostgresWrite, unknown>

/**
 * Sends a batch that only adds plants as one statement, which assumes that no id and no key is
 * taken. If one is, creates without a key are sent once more, without the ids that are taken. Every
 * other batch becomes a transaction: it locks and reads the rows, changes them in memory, and then
 * writes them back.
 */
export async function sendWrites(sql: Sql, writes: PostgresWrite[]): Promise<Outcomes> {
  const changes = writes.map(({ change }) => change)
  for (const load of listLoads(changes)) {
    const rows = await load(sql, changes)
    const { outcomes, journalRow } = applyAll(rows, writes)
    if (journalRow === undefined || (await rows.insertAll(sql, journalRow))) return outcomes
  }
  return inTransaction(sql, async () => {
    const rows = await loadLocked(sql, changes)
    const { outcomes, journalRow } = applyAll(rows, writes)
    if (journalRow !== undefined) await rows.save(sql, journalRow)
    return outcomes
  })
}

const additions: ReadonlySet<Change['kind']> = new Set(['create', 'create once', 'import'])

/** What to load for each attempt to insert a batch, in turn. */
function listLoads(changes: readonly Change[]) {
  if (changes.every(({ kind }) => kind === 'create')) return [loadNothing, loadIds]
  // An import compares its plants with those that are there. The replay of a key has to lock its
  // plant: then its commit waits for a standby that does not have the plant yet.
  return changes.every(({ kind }) => additions.has(kind)) ? [loadNothing] : []
}

function applyAll(rows: Rows, writes: PostgresWrite[]) {
  const recorder = buildRecorder(rows)
  const outcomes: Outcomes = new Map(writes.map((write) => [write, recorder.apply(write.change)]))
  return { outcomes, journalRow: recorder.drain() }
}

/** Processes that write the same ids conflict repeatedly before each has succeeded. */
const maxAttempts = 20
const backoffMs = 10

/** Retries a write after a conflict. */
export async function attemptWrite<Value>(run: () => Promise<Value>): Promise<Value> {
  for (let count = 1; ; count++) {
    try {
      return await run()
    } catch (error) {
      if (!isConflict(error) || count === maxAttempts) throw toWriteFailure(error)
      // Random backoff, so that the two do not conflict again.
      await sleep(Math.random() * count * backoffMs)
    }
  }
}

const uniqueViolation = '23505'

/**
 * Runs a statement with plants as `$1` to `$4`, an array for each column, and other values after
 * them. So each value is sent once, however often the statement uses it. Arrays of integers are
 * written here, because pg would quote and escape each of them.
 */
function runWithPlants(
  sql: Sql,
  statement: string,
  plants: readonly VersionedPlant[],
  others: readonly Value[] = [],
) {
  return sql.run(statement, [
    `{${plants.map(({ id }) => id)}}`,
    plants.map(({ name }) => name),
    plants.map(({ tag = null }) => tag),
    `{${plants.map(({ version }) => version)}}`,
    ...others,
  ])
}

/**
 * The plants of `$1` to `$4` as rows, if a condition is true. They are sorted by id, so that two
 * batches of creates never deadlock. In FROM, `unnest` would materialize them before the sort.
 */
function selectPlants(condition = 'TRUE'): string {
  return `
    SELECT pg_catalog.unnest($1::bigint[]) AS id, pg_catalog.unnest($2::text[]) AS name,
      pg_catalog.unnest($3::text[]) AS tag, pg_catalog.unnest($4::bigint[]) AS version
    WHERE ${condition} ORDER BY id`
}

/** Rows that are changed in memory, and then written together. */
interface LoadedRows extends Rows {
  /**
   * Writes the new plants and keys, and the row of the journal, with one statement. Returns false,
   * and writes nothing, if an id or a key is taken.
   */
  insertAll(sql: Sql, journalRow: JournalRow): Promise<boolean>
  /** Writes every change, inside a transaction that has locked the plants. */
  save(sql: Sql, journalRow: JournalRow): Promise<void>
}

const loadNothing = async () => buildRows(new Map(), [])
/** The ids of the plants, without their texts, and without waiting for those who change them. */
const loadIds = buildLoad(
  `SELECT id, '', NULL, 0 FROM plant_store.plants WHERE id = ANY($1::bigint[])`,
)
/** The plants, locked in the same order in every process, and the keys. */
const loadLocked = buildLoad(
  `SELECT id, name, tag, version
   FROM plant_store.plants WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE`,
)

function buildLoad(selection: string) {
  return async (sql: Sql, changes: readonly Change[]): Promise<LoadedRows> => {
    const ids = new Set(changes.flatMap(toIds))
    const plants = await sql.texts<VersionedRow>(selection, [[...ids]])
    // After the plants: a plant that was found there has left its key as well.
    const keys = changes.flatMap((change) => ('key' in change ? change.key : []))
    const uses = keys.length === 0 ? [] : await selectKeys(sql, keys)
    return buildRows(toPlantsById(plants), uses.map(toKeyUse))
  }
}

function toIds(change: Change): bigint[] {
  if (change.kind === 'delete') return [change.id]
  return 'plant' in change ? [change.plant.id] : change.plants.map(({ id }) => id)
}

function buildRows(
  before: ReadonlyMap<bigint, VersionedPlant>,
  usesBefore: readonly KeyUse[],
): LoadedRows {
  const plants = new Map(before)
  const keysBefore = new Set(usesBefore.map(toKeyName))
  const uses = new Map(usesBefore.map((use) => [toKeyName(use), use]))
  const newUses: KeyUse[] = []
  const created = new Map<bigint, VersionedPlant>()
  // A plant that was created and deleted again is also inserted, to lock its id.
  const listCreated = () => [...created].map(([id, plant]) => plants.get(id) ?? plant)

  return {
    find: (id) => plants.get(id),
    insert(plant) {
      if (plants.has(plant.id)) return false
      if (!before.has(plant.id)) created.set(plant.id, plant)
      plants.set(plant.id, plant)
      return true
    },
    update: (plant) => void plants.set(plant.id, plant),
    delete: ({ id }) => void plants.delete(id),
    findKey: (key) => uses.get(toKeyName(key)),
    putKey(use) {
      uses.set(toKeyName(use), use)
      newUses.push(use)
    },

    insertAll: (sql, journalRow) => insertAll(sql, listCreated(), newUses, journalRow),

    async save(connection, journalRow) {
      const updated = [...plants.values()].filter(
        (plant) => before.has(plant.id) && plant !== before.get(plant.id),
      )
      const removed = [...before.keys(), ...created.keys()].filter((id) => !plants.has(id))
      const expired = newUses.filter((use) => keysBefore.has(toKeyName(use)))
      const saved = await Promise.allSettled([
        removeKeys(connection, expired),
        updatePlants(connection, updated),
        insertAll(connection, listCreated(), newUses, journalRow),
        // After those that were created, some of which may be gone. Each is locked by now.
        removePlants(connection, removed),
      ])
      // Waits for all, because a statement after the ROLLBACK would commit on its own.
      for (const outcome of saved) {
        if (outcome.status === 'rejected') throw outcome.reason
        if (outcome.value === false) throw new StaleRows()
      }
    },
  }
}

/**
 * One statement for plants, keys and the row of the journal, if the journal is on. Checking the ids
 * first is cheaper than ON CONFLICT, which writes each row to the WAL twice. The `seq` of the
 * journal row is drawn after every other row is inserted (see `Horizon`), and the journal is read
 * when the table of plants is locked (see `setJournaling`).
 */
function toInsertion(areFree = '', used = '', areUsed = ''): string {
  return `
    WITH inserted AS (
      INSERT INTO plant_store.plants (id, name, tag, version)
      ${selectPlants(`${noPlantIsThere} ${areFree}`)}
      RETURNING 1
    ), last AS (
      SELECT WHERE (SELECT pg_catalog.count(*) FROM inserted) =
        pg_catalog.cardinality($1::bigint[])::bigint
    ) ${used}, journaled AS (
      INSERT INTO plant_store.journal (seq, at, nonce, count, changes)
      SELECT pg_catalog.nextval('plant_store.journal_seq'), $5::bigint, $6::integer, $7::integer,
        $8::text
      FROM last WHERE (SELECT id IS NOT NULL FROM plant_store.journal_life) ${areUsed}
    )
    SELECT FROM last`
}

const noPlantIsThere = 'NOT EXISTS (SELECT FROM plant_store.plants WHERE id = ANY($1::bigint[]))'
const insertionOfPlants = toInsertion()
const insertionWithKeys = toInsertion(
  `AND NOT EXISTS (SELECT FROM plant_store.keys
    WHERE (token_id, key) IN (SELECT * FROM unnest($9::text[], $10::text[])))`,
  `, used AS (
      INSERT INTO plant_store.keys (token_id, key, fingerprint, version, used_at)
      SELECT uses.* FROM last, unnest($9::text[], $10::text[], $11::bytea[], $12::bigint[],
        $13::bigint[]) AS uses
      RETURNING 1
    )`,
  'AND (SELECT pg_catalog.count(*) FROM used) > 0',
)

/** Returns whether the rows were inserted. */
async function insertAll(
  sql: Sql,
  plants: readonly VersionedPlant[],
  uses: readonly KeyUse[],
  { at, nonce, count, changes }: JournalRow,
): Promise<boolean> {
  const row = [at, nonce, count, changes]
  try {
    const { count: inserted } = await (uses.length === 0
      ? runWithPlants(sql, insertionOfPlants, plants, row)
      : runWithPlants(sql, insertionWithKeys, plants, [...row, ...toColumns(uses)]))
    return inserted === 1
  } catch (error) {
    // Another transaction took an id or a key after the statement had checked.
    if (codeOf(error) === uniqueViolation) return false
    throw error
  }
}

function selectKeys(sql: Sql, keys: readonly CreateKey[]): Promise<KeyRow[]> {
  const tokenIds = keys.map(({ tokenId }) => tokenId)
  const names = keys.map(({ key }) => key)
  return sql<KeyRow[]>`
    SELECT token_id AS "tokenId", key, fingerprint, version, used_at AS "usedAt"
    FROM plant_store.keys
    WHERE (token_id, key) IN (SELECT * FROM unnest(${tokenIds}::text[], ${names}::text[]))`
}

const replacement = `
  UPDATE plant_store.plants SET name = new.name, tag = new.tag, version = new.version
  FROM (${selectPlants()}) AS new WHERE plants.id = new.id`

async function updatePlants(sql: Sql, plants: VersionedPlant[]): Promise<void> {
  if (plants.length === 0) return
  await runWithPlants(sql, replacement, plants)
}

async function removePlants(sql: Sql, ids: bigint[]): Promise<void> {
  if (ids.length === 0) return
  await sql`DELETE FROM plant_store.plants WHERE id = ANY(${ids}::bigint[])`
}

async function removeKeys(sql: Sql, expired: KeyUse[]): Promise<void> {
  if (expired.length === 0) return
  const [tokenIds, keys, , , times] = toColumns(expired)
  await sql`
    DELETE FROM plant_store.keys USING unnest(${tokenIds}::text[], ${keys}::text[],
      ${times}::bigint[]) AS new (token_id, key, used_at)
    WHERE keys.token_id = new.token_id AND keys.key = new.key
      AND keys.used_at <= new.used_at - ${limits.keyLifetimeMs}::bigint`
}

/** An array for each column. They are sorted, so that two batches never deadlock. */
function toColumns(uses: readonly KeyUse[]) {
  const sorted = uses.toSorted((a, b) => (toKeyName(a) < toKeyName(b) ? -1 : 1))
  return [
    sorted.map(({ tokenId }) => tokenId),
    sorted.map(({ key }) => key),
    sorted.map(({ fingerprint }) => fingerprint),
    sorted.map(({ version }) => version),
    sorted.map(({ usedAt }) => usedAt),
  ] as const
}

function toKeyName({ tokenId, key }: CreateKey): string {
  return `${tokenId} ${key}`
}

function toPlantsById(rows: readonly VersionedRow[]): Map<bigint, VersionedPlant> {
  const plants = new Map<bigint, VersionedPlant>()
  for (const row of rows) {
    const plant = toVersionedPlant(row)
    plants.set(plant.id, plant)
  }
  return plants
}

export function toVersionedPlant(row: VersionedRow): VersionedPlant {
  return toVersioned(toStored(row), BigInt(row[3]))
}

export function toStored(row: PlantRow<string[]>): StoredPlant {
  // Not destructured: an iterator per row is a visible part of the cost of a page.
  const id = BigInt(row[0])
  return row[2] === null ? { id, name: row[1] } : { id, name: row[1], tag: row[2] }
}

function toKeyUse({ version, usedAt, ...key }: KeyRow): KeyUse {
  return { ...key, version: BigInt(version), usedAt: Number(usedAt) }
}
