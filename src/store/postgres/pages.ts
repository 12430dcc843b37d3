import { limits } from '../../contract/limits.ts'
import type { StoredPlant } from '../../contract/shapes.ts'
import type { PlantPage, PlantQuery } from '../store.ts'
import { type StoredRow, toStored } from './plants.ts'
import type { Sql } from './pools.ts'

/** A row without its texts, where the plant is too large for its share of the page. */
type SparseRow = Omit<StoredRow, 'name'> & { readonly name: string | null }

const smallestId = -(2n ** 63n)
const largestId = 2n ** 63n - 1n

/**
 * Reads one page. The server sends no texts of a plant that exceeds its share: then only the
 * beginning is read.
 */
export async function listPlants(sql: Sql, query: PlantQuery): Promise<PlantPage> {
  const { after, tag, limit } = query
  if (after === largestId) return { plants: [], isWhole: true }
  const share = Math.floor(limits.pageBytes / limit)
  const from = toFirstId(after)
  // Written out: assembling a statement from fragments costs as much as reading twenty rows.
  const rows = await (tag === undefined
    ? sql<SparseRow[]>`
      SELECT id,
        CASE WHEN pg_catalog.octet_length(name) + coalesce(pg_catalog.octet_length(tag), 0)
          <= ${share} THEN name END AS name,
        CASE WHEN pg_catalog.octet_length(tag) <= ${share} THEN tag END AS tag
      FROM plant_store.plants WHERE id >= ${from}::bigint ORDER BY id LIMIT ${limit}`
    : sql<SparseRow[]>`
      SELECT id,
        CASE WHEN pg_catalog.octet_length(name) + pg_catalog.octet_length(tag)
          <= ${share} THEN name END AS name, tag
      FROM plant_store.plants ${toStretch(sql, from, tag)} LIMIT ${limit}`)
  const plants: StoredPlant[] = []
  // A loop: mapping the driver's rows, which are no plain array, would cost a fifth of the page.
  for (const row of rows) {
    if (!isComplete(row)) return listBeginning(sql, query)
    plants.push(toStored(row))
  }
  return { plants, isWhole: true }
}

function isComplete(row: SparseRow): row is StoredRow {
  return row.name !== null
}

/**
 * Reads the beginning of a page, up to the size that may be sent. The server knows lengths without
 * reading texts.
 */
async function listBeginning(sql: Sql, { after, tag, limit }: PlantQuery): Promise<PlantPage> {
  const rows = await sql<(StoredRow & { readonly found: string })[]>`
    SELECT id, name, tag, found FROM (
      SELECT *, pg_catalog.sum(pg_catalog.octet_length(name)
          + coalesce(pg_catalog.octet_length(tag), 0)) OVER (ORDER BY id) AS bytes,
        pg_catalog.row_number() OVER (ORDER BY id) AS place,
        pg_catalog.count(*) OVER () AS found
      FROM (SELECT id, name, tag FROM plant_store.plants
        ${toStretch(sql, toFirstId(after), tag)} LIMIT ${limit}) AS page
    ) AS measured
    WHERE bytes <= ${limits.pageBytes} OR place = 1 ORDER BY id`
  return { plants: rows.map(toStored), isWhole: rows.length === Number(rows[0]?.found ?? 0) }
}

/** The ids of a page, whatever the size of its plants. */
export async function listIds(sql: Sql, { after, tag, limit }: PlantQuery): Promise<bigint[]> {
  if (after === largestId) return []
  const rows = await sql<{ id: string }[]>`
    SELECT id FROM plant_store.plants ${toStretch(sql, toFirstId(after), tag)} LIMIT ${limit}`
  return rows.map(({ id }) => BigInt(id))
}

export async function countPlants(sql: Sql, tag: string | undefined): Promise<number> {
  const [row] = await (tag === undefined
    ? sql<[{ count: string }]>`SELECT pg_catalog.count(*) FROM plant_store.plants`
    : sql<[{ count: string }]>`SELECT pg_catalog.count(*) FROM plant_store.plants
        WHERE plant_store.tag_key(tag) = plant_store.tag_key(${tag}) AND tag IS NOT NULL`)
  return Number(row.count)
}

function toFirstId(after: bigint | undefined): string {
  return String(after === undefined ? smallestId : after + 1n)
}

/**
 * The plants from an id on, or those with a tag, in order. The plants of a tag are one stretch of
 * the index by key and id. Only this form keeps the planner to it: with an equality it reads and
 * sorts the whole tag where it expects few plants, and walks along the ids of all plants where it
 * expects many.
 */
function toStretch(sql: Sql, from: string, tag: string | undefined) {
  if (tag === undefined) return sql`WHERE id >= ${from}::bigint ORDER BY id`
  return sql`
    WHERE (plant_store.tag_key(tag), id) >= (plant_store.tag_key(${tag}), ${from}::bigint)
      AND plant_store.tag_key(tag) <= plant_store.tag_key(${tag}) AND tag IS NOT NULL
    ORDER BY plant_store.tag_key(tag), id`
}
