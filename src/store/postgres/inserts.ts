import { newNonce, toCreatedRow } from '../journal.ts'
import type { VersionedPlant } from '../store.ts'
import { toIntegerArray, toTextArray } from './arrays.ts'
import { runWithPlants, selectPlants } from './columns.ts'
import { codeOf, StaleRows } from './failures.ts'
import type { Sql } from './pools.ts'

/** The token of each plant, or one for all of them. */
type TokenIds = readonly (string | undefined)[]

const uniqueViolation = '23505'

/**
 * Inserts plants in one statement, with their row of the journal: all of them, or none if ids are
 * taken. Returns these ids.
 */
export async function insertAllOrNone(
  sql: Sql,
  plants: readonly VersionedPlant[],
  tokenIds: TokenIds,
  journaling: 'on' | 'off',
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
    return await (isAlone
      ? insertOneJournaled(sql, plant, tokenIds[0])
      : insertManyJournaled(sql, plants, tokenIds))
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

async function insertOneJournaled(
  sql: Sql,
  plant: VersionedPlant,
  tokenId: string | undefined,
): Promise<bigint[]> {
  const { id, name, tag, version } = plant
  const { at, nonce, changes } = toCreatedRow(plant, tokenId)
  const { count } = await sql`
    WITH inserted AS (
      INSERT INTO plant_store.plants (id, name, tag, version)
      VALUES (${String(id)}::bigint, ${name}, ${tag ?? null}, ${String(version)}::bigint)
      ON CONFLICT (id) DO NOTHING RETURNING 1
    )
    INSERT INTO plant_store.journal (at, nonce, count, changes)
    SELECT ${at}::bigint, ${nonce}::integer, 1, ${changes}::text FROM inserted`
  return count === 1 ? [] : [id]
}

/** To look first costs less than ON CONFLICT, with which the server logs each row twice. */
const areFree = 'NOT EXISTS (SELECT FROM plant_store.plants WHERE id = ANY($1::bigint[]))'

const insertion = `
  INSERT INTO plant_store.plants (id, name, tag, version)
  ${selectPlants(`${areFree} AND (SELECT id IS NULL FROM plant_store.journal_life)`)}`

/** Inserts several plants, unless the journal is on. Returns whether they were inserted. */
async function insertMany(sql: Sql, plants: readonly VersionedPlant[]): Promise<boolean> {
  const { count } = await runWithPlants(sql, insertion, plants)
  return count > 0
}

/** The number of the row is drawn for the last plant, when every insert is done. */
const journaledInsertion = `
  WITH inserted AS (
    INSERT INTO plant_store.plants (id, name, tag, version) ${selectPlants(areFree)} RETURNING 1
  )
  INSERT INTO plant_store.journal (at, nonce, count, ids, names, tags, token_ids)
  SELECT $5::bigint, $6::integer, $7::integer, $1::bigint[], $2::text[], $3::text[], $8::text[]
  FROM (SELECT FROM inserted OFFSET $7::integer - 1) AS last`

async function insertManyJournaled(
  sql: Sql,
  plants: readonly VersionedPlant[],
  tokenIds: TokenIds,
): Promise<bigint[]> {
  const others = [Date.now(), newNonce(), plants.length, toTokenArray(tokenIds)]
  const { count } = await runWithPlants(sql, journaledInsertion, plants, others)
  if (count === 1) return []
  const taken = await findTaken(sql, plants)
  // Another transaction has deleted them since.
  if (taken.length === 0) throw new StaleRows()
  return taken
}

/** The ids alone: the plants that have them may be large. */
async function findTaken(sql: Sql, plants: readonly VersionedPlant[]): Promise<bigint[]> {
  const ids = toIntegerArray(plants.map(({ id }) => id))
  const rows = await sql<{ id: string }[]>`
    SELECT id FROM plant_store.plants WHERE id = ANY(${ids}::bigint[])`
  return rows.map(({ id }) => BigInt(id))
}

function toTokenArray(tokenIds: TokenIds): string {
  const [first] = tokenIds
  const fewest = tokenIds.every((tokenId) => tokenId === first) ? [first] : tokenIds
  return toTextArray(fewest.map((tokenId = '') => tokenId))
}
