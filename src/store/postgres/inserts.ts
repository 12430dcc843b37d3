import { buildRecorder } from '../../journal/recorder.ts'
import type { VersionedPlant } from '../store.ts'
import { codeOf, StaleRows } from './failures.ts'
import type { Sql, Value } from './sql.ts'

/** The token of each plant, or one for all of them. */
type TokenIds = readonly (string | undefined)[]

const uniqueViolation = '23505'

/**
 * Runs a statement with plants as `$1` to `$4`, an array for each column, and with others after
 * them. Each is sent once, however often it is used.
 */
export function runWithPlants<Row extends object = object>(
  sql: Sql,
  statement: string,
  plants: readonly VersionedPlant[],
  others: readonly Value[] = [],
) {
  return sql.run<Row[]>(statement, [
    plants.map(({ id }) => id),
    plants.map(({ name }) => name),
    plants.map(({ tag = null }) => tag),
    plants.map(({ version }) => version),
    ...others,
  ])
}

/**
 * The plants of `$1` to `$4` as rows, if a condition is true. They come in the order of their ids,
 * so that two batches of creates never lock each other out. As a function in FROM, `unnest` would
 * store them before they are sorted.
 */
export function selectPlants(condition = 'TRUE'): string {
  return `
    SELECT pg_catalog.unnest($1::bigint[]) AS id, pg_catalog.unnest($2::text[]) AS name,
      pg_catalog.unnest($3::text[]) AS tag, pg_catalog.unnest($4::bigint[]) AS version
    WHERE ${condition} ORDER BY id`
}

/**
 * Inserts plants in one statement, with their rows of the journal if it is on: all of them, or none
 * if ids are taken. Returns these ids.
 */
export async function insertAllOrNone(
  sql: Sql,
  plants: readonly VersionedPlant[],
  tokenIds: TokenIds,
): Promise<bigint[]> {
  if (plants.length === 0) return []
  try {
    if (await insertAll(sql, plants, tokenIds)) return []
    const taken = await findTaken(sql, plants)
    // Another transaction has deleted them since.
    if (taken.length === 0) throw new StaleRows()
    return taken
  } catch (error) {
    // Another transaction took an id after the statement had looked.
    throw codeOf(error) === uniqueViolation ? new StaleRows() : error
  }
}

/**
 * To look for the ids first costs less than ON CONFLICT, with which the server logs each row twice.
 * A number is drawn for each row of the journal once every plant is inserted: see `Horizon`.
 */
const insertion = `
  WITH inserted AS (
    INSERT INTO plant_store.plants (id, name, tag, version)
    ${selectPlants('NOT EXISTS (SELECT FROM plant_store.plants WHERE id = ANY($1::bigint[]))')}
    RETURNING 1
  ), counted AS (SELECT pg_catalog.count(*) AS plants FROM inserted), journaled AS (
    INSERT INTO plant_store.journal (seq, at, nonce, count, changes)
    SELECT pg_catalog.nextval('plant_store.journal_seq'), at, nonce, count, changes
    FROM (SELECT pg_catalog.unnest($5::bigint[]) AS at, pg_catalog.unnest($6::bigint[]) AS nonce,
      pg_catalog.unnest($7::bigint[]) AS count, pg_catalog.unnest($8::text[]) AS changes) AS rows
    WHERE (SELECT plants FROM counted) > 0
      AND (SELECT id IS NOT NULL FROM plant_store.journal_life)
  )
  SELECT plants FROM counted`

/** Returns whether the plants were inserted. */
async function insertAll(
  sql: Sql,
  plants: readonly VersionedPlant[],
  tokenIds: TokenIds,
): Promise<boolean> {
  const recorder = buildRecorder()
  for (const [index, plant] of plants.entries()) {
    recorder.record('c', tokenIds.length === 1 ? tokenIds[0] : tokenIds[index], plant)
  }
  const rows = recorder.take()
  const [counted] = await runWithPlants<{ plants: string }>(sql, insertion, plants, [
    rows.map(({ at }) => at),
    rows.map(({ nonce }) => nonce),
    rows.map(({ count }) => count),
    rows.map(({ changes }) => changes),
  ])
  return counted?.plants !== '0'
}

/** The ids alone: the plants that have them may be large. */
async function findTaken(sql: Sql, plants: readonly VersionedPlant[]): Promise<bigint[]> {
  const ids = plants.map(({ id }) => id)
  const rows = await sql<{ id: string }[]>`
    SELECT id FROM plant_store.plants WHERE id = ANY(${ids}::bigint[])`
  return rows.map(({ id }) => BigInt(id))
}
