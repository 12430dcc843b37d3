import type { StoredPlant } from '../../contract/shapes.ts'
import { type PlantPage, type PlantQuery, pageBytes } from '../store.ts'
import { type StoredRow, toStored } from './plants.ts'
import type { Sql } from './pools.ts'

/** The texts of a plant that is too large for its place on a page are left where they are. */
type SparseRow = Omit<StoredRow, 'name'> & { readonly name: string | null }

const smallestId = -(2n ** 63n)
const largestId = 2n ** 63n - 1n

/** One page. Of a plant that is too large for its place on it the server sends no texts, and is asked for its beginning. */
export async function listPlants(sql: Sql, query: PlantQuery): Promise<PlantPage> {
  const { after, tag, limit } = query
  const share = Math.floor(pageBytes / limit)
  // Written out, though the filter is said elsewhere, too: to put statements together costs as much as twenty rows.
  if (after === largestId) return { plants: [], isWhole: true }
  const from = String(after === undefined ? smallestId : after + 1n)
  const rows = await (tag === undefined
    ? sql<SparseRow[]>`
      SELECT id,
        CASE WHEN octet_length(name) + coalesce(octet_length(tag), 0) <= ${share} THEN name END AS name,
        CASE WHEN octet_length(tag) <= ${share} THEN tag END AS tag
      FROM plant_store.plants WHERE id >= ${from}::bigint ORDER BY id LIMIT ${limit}`
    : sql<SparseRow[]>`
      SELECT id,
        CASE WHEN octet_length(name) + octet_length(tag) <= ${share} THEN name END AS name, tag
      FROM plant_store.plants WHERE ${toFilter(sql, query)} ORDER BY id LIMIT ${limit}`)
  const plants: StoredPlant[] = []
  // A loop, because the driver's rows are no plain array: to map them costs a fifth of the page.
  for (const row of rows) {
    if (!isComplete(row)) return listBeginning(sql, query)
    plants.push(toStored(row))
  }
  return { plants, isWhole: true }
}

function isComplete(row: SparseRow): row is StoredRow {
  return row.name !== null
}

/** The beginning of a page, up to the size that may be sent. The lengths of texts are known without reading them. */
async function listBeginning(sql: Sql, query: PlantQuery): Promise<PlantPage> {
  const rows = await sql<(StoredRow & { readonly found: string })[]>`
    SELECT id, name, tag, found FROM (
      SELECT *, sum(octet_length(name) + coalesce(octet_length(tag), 0)) OVER (ORDER BY id) AS bytes,
        row_number() OVER (ORDER BY id) AS place, count(*) OVER () AS found
      FROM (SELECT id, name, tag FROM plant_store.plants
        WHERE ${toFilter(sql, query)} ORDER BY id LIMIT ${query.limit}) AS page
    ) AS measured
    WHERE bytes <= ${pageBytes} OR place = 1 ORDER BY id`
  return { plants: rows.map(toStored), isWhole: rows.length === Number(rows[0]?.found ?? 0) }
}

export async function listIds(sql: Sql, query: PlantQuery): Promise<bigint[]> {
  const rows = await sql<{ id: string }[]>`
    SELECT id FROM plant_store.plants
    WHERE ${toFilter(sql, query)} ORDER BY id LIMIT ${query.limit}`
  return rows.map(({ id }) => BigInt(id))
}

export async function countPlants(sql: Sql, tag: string | undefined): Promise<number> {
  const [row] = await sql<[{ count: string }]>`
    SELECT count(*) FROM plant_store.plants WHERE ${toFilter(sql, { after: undefined, tag })}`
  return Number(row.count)
}

function toFilter(sql: Sql, { after, tag }: Pick<PlantQuery, 'after' | 'tag'>) {
  const follows = after === undefined ? sql`TRUE` : sql`id > ${String(after)}::bigint`
  if (tag === undefined) return follows
  return sql`hashtextextended(tag, 0) = hashtextextended(${tag}, 0) AND tag = ${tag} AND ${follows}`
}
