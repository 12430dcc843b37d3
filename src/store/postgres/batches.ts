import type { Batched } from '../batcher.ts'
import { apply, type Change, type Create, type Import } from '../changes.ts'
import type { ImportOutcome, VersionedPlant } from '../store.ts'
import { loadRows, unnest } from './plants.ts'
import { inTransaction, type Sql } from './session.ts'

/** A write that waits for its batch. */
export interface PostgresWrite<One extends Change = Change> extends Batched {
  readonly change: One
  /** A write that its caller has given up must not be sent any more. */
  state: 'waiting' | 'sent' | 'given up'
}

type Outcomes = Map<PostgresWrite, unknown>

/** Sends a batch in the cheapest way for its changes. */
export function sendWrites(sql: Sql, writes: PostgresWrite[]): Promise<Outcomes> {
  if (writes.every(isCreate)) return createAll(sql, writes)
  const [write] = writes
  const isAlone = writes.length === 1 && write !== undefined
  return isAlone && isImport(write) ? importAll(sql, write) : runAll(sql, writes)
}

function isCreate(write: PostgresWrite): write is PostgresWrite<Create> {
  return write.change.kind === 'create'
}

function isImport(write: PostgresWrite): write is PostgresWrite<Import> {
  return write.change.kind === 'import'
}

/** Sends plain creates as one statement. The first of several with the same id wins. */
async function createAll(sql: Sql, writes: PostgresWrite<Create>[]): Promise<Outcomes> {
  const firsts = new Map<bigint, PostgresWrite<Create>>()
  for (const write of writes) {
    const { id } = write.change.plant
    if (!firsts.has(id)) firsts.set(id, write)
  }
  const taken = await insert(
    sql,
    [...firsts.values()].map(({ change }) => change.plant),
  )
  return new Map(
    writes.map((write) => {
      const { id, version } = write.change.plant
      const isCreated = firsts.get(id) === write && !taken?.has(id)
      return [write, isCreated ? version : 'exists']
    }),
  )
}

/** Inserts plants. Returns the ids that were taken; undefined if there were none. */
async function insert(
  sql: Sql,
  plants: readonly VersionedPlant[],
): Promise<Set<bigint> | undefined> {
  const [plant] = plants
  if (plant === undefined) return undefined
  if (plants.length === 1) return (await insertOne(sql, plant)) ? undefined : new Set([plant.id])
  const [row] = await sql<[{ ids: string | null; inserted: string }]>`
    WITH inserted AS (
      INSERT INTO plant_store.plants (id, name, tag, version) SELECT * FROM ${unnest(sql, plants)}
      ON CONFLICT (id) DO NOTHING RETURNING id
    )
    SELECT CASE WHEN pg_catalog.count(*) < ${plants.length}::bigint
             THEN pg_catalog.string_agg(id::text, ',') END AS ids,
           pg_catalog.count(*) AS inserted
    FROM inserted`
  if (Number(row.inserted) === plants.length) return undefined
  const inserted = new Set(row.ids?.split(','))
  return new Set(plants.map(({ id }) => id).filter((id) => !inserted.has(String(id))))
}

/** Inserts one plant, as plain values: they cost the server less than arrays. */
async function insertOne(sql: Sql, { id, name, tag, version }: VersionedPlant): Promise<boolean> {
  const rows = await sql`
    INSERT INTO plant_store.plants (id, name, tag, version)
    VALUES (${String(id)}::bigint, ${name}, ${tag ?? null}, ${String(version)}::bigint)
    ON CONFLICT (id) DO NOTHING RETURNING 1`
  return rows.length === 1
}

/**
 * Inserts the plants of an import in one statement. If ids were taken, a transaction then applies
 * the import to those rows.
 */
async function importAll(sql: Sql, write: PostgresWrite<Import>): Promise<Outcomes> {
  const { plants } = write.change
  if (new Set(toIds(write.change)).size < plants.length) return runAll(sql, [write])
  const taken = await insert(sql, plants)
  if (taken === undefined) return new Map([[write, plants.map((): ImportOutcome => 'stored')]])
  const outcomes = await inTransaction(sql, async () => {
    const rows = await loadRows(sql, [...taken], [])
    // Plants that the statement inserted count as inserted by the change.
    const isIn = ({ id }: VersionedPlant) => !taken.has(id)
    const insertRest = (plant: VersionedPlant) => isIn(plant) || rows.insert(plant)
    const found = apply({ ...rows, insert: insertRest }, write.change)
    await rows.save(sql)
    return found
  })
  return new Map([[write, outcomes]])
}

/** Runs any writes: locks and reads the rows, changes them in memory, and writes them back. */
function runAll(sql: Sql, writes: PostgresWrite[]): Promise<Outcomes> {
  return inTransaction(sql, async () => {
    const ids = [...new Set(writes.flatMap(({ change }) => toIds(change)))]
    const keys = writes.flatMap(({ change }) => ('key' in change ? change.key : []))
    const rows = await loadRows(sql, ids, keys)
    const outcomes = new Map(writes.map((write) => [write, apply(rows, write.change)]))
    await rows.save(sql)
    return outcomes
  })
}

/** The ids that a change may touch. */
function toIds(change: Change): bigint[] {
  if (change.kind === 'import') return change.plants.map(({ id }) => id)
  return [change.kind === 'delete' ? change.id : change.plant.id]
}
