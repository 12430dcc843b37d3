import type { JournalRow } from '../journal.ts'
import type { VersionedPlant } from '../store.ts'
import { codeOf, StaleRows } from './failures.ts'
import { selectColumns, toColumns } from './plants.ts'
import type { Sql } from './pools.ts'

const uniqueViolation = '23505'

/**
 * Inserts plants in one statement, with their row of the journal: all of them, or none if ids are
 * taken. Returns these ids.
 */
export async function insertPlants(
  sql: Sql,
  plants: readonly VersionedPlant[],
  journaling: 'on' | 'off',
  toEntry: () => JournalRow,
): Promise<bigint[]> {
  const [plant] = plants
  if (plant === undefined) return []
  const isAlone = plants.length === 1
  try {
    if (journaling === 'off') {
      const isDone = await (isAlone ? insertOne(sql, plant) : insertMany(sql, plants))
      if (isDone) return []
      // An id is taken, or another process has begun the journal.
    }
    const entry = toEntry()
    return await (isAlone ? insertOneWith(sql, plant, entry) : insertManyWith(sql, plants, entry))
  } catch (error) {
    // Another transaction took an id after the statement had looked.
    throw codeOf(error) === uniqueViolation ? new StaleRows() : error
  }
}

/**
 * Inserts one plant, unless the journal is on. Plain values cost the server less than arrays.
 * Returns whether the plant was inserted.
 */
async function insertOne(sql: Sql, { id, name, tag, version }: VersionedPlant): Promise<boolean> {
  const { count } = await sql`
    INSERT INTO plant_store.plants (id, name, tag, version)
    SELECT ${String(id)}::bigint, ${name}::text, ${tag ?? null}::text, ${String(version)}::bigint
    FROM plant_store.journal_life AS life WHERE life.id IS NULL
    ON CONFLICT (id) DO NOTHING`
  return count === 1
}

async function insertOneWith(
  sql: Sql,
  { id, name, tag, version }: VersionedPlant,
  { at, nonce, changes }: JournalRow,
): Promise<bigint[]> {
  const { count } = await sql`
    WITH inserted AS (
      INSERT INTO plant_store.plants (id, name, tag, version)
      VALUES (${String(id)}::bigint, ${name}, ${tag ?? null}, ${String(version)}::bigint)
      ON CONFLICT (id) DO NOTHING RETURNING 1
    )
    INSERT INTO plant_store.journal (seq, at, nonce, count, changes)
    SELECT pg_catalog.nextval('plant_store.journal_seq'), ${at}::bigint, ${nonce}::integer, 1,
      ${changes}::text
    FROM inserted`
  return count === 1 ? [] : [id]
}

/**
 * Inserts several plants, unless the journal is on. Returns whether they were inserted. To look for
 * their ids first costs less than ON CONFLICT, with which the server logs each row twice.
 */
async function insertMany(sql: Sql, plants: readonly VersionedPlant[]): Promise<boolean> {
  const columns = toColumns(plants)
  const { count } = await sql`
    WITH taken AS MATERIALIZED (
      SELECT id FROM plant_store.plants WHERE id = ANY(${columns.ids}::bigint[])
    )
    INSERT INTO plant_store.plants (id, name, tag, version) ${selectColumns(sql, columns)}
    WHERE NOT EXISTS (SELECT FROM taken) AND (SELECT id IS NULL FROM plant_store.journal_life)`
  return count > 0
}

/** The number of the row is drawn above the aggregate, when every insert is done. */
async function insertManyWith(
  sql: Sql,
  plants: readonly VersionedPlant[],
  { at, nonce, changes }: JournalRow,
): Promise<bigint[]> {
  const columns = toColumns(plants)
  const taken = await sql<{ id: string }[]>`
    WITH taken AS MATERIALIZED (
      SELECT id FROM plant_store.plants WHERE id = ANY(${columns.ids}::bigint[])
    ), inserted AS (
      INSERT INTO plant_store.plants (id, name, tag, version) ${selectColumns(sql, columns)}
      WHERE NOT EXISTS (SELECT FROM taken) RETURNING 1
    ), written AS (
      INSERT INTO plant_store.journal (seq, at, nonce, count, changes)
      SELECT pg_catalog.nextval('plant_store.journal_seq'), ${at}::bigint, ${nonce}::integer,
        count, ${changes}::text
      FROM (SELECT pg_catalog.count(*) FROM inserted) AS counted WHERE count > 0
    )
    SELECT id FROM taken`
  return taken.map(({ id }) => BigInt(id))
}
