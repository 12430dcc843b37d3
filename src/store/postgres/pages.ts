import { limits } from '../../contract/limits.ts'
import type { Order } from '../../contract/parameters.ts'
import type { StoredPlant } from '../../contract/shapes.ts'
import { toFirstId } from '../lists.ts'
import type { ListQuery, PlantPage } from '../store.ts'
import { type PlantRow, toStored } from './plants.ts'
import type { Sql, Texts } from './sql.ts'

/** A plant that is too large for its share of the page. */
type LargeRow = readonly [id: string, name: null, tag: string | null]

/** A statement on the plants from an id on, and the same for those with a tag. */
interface Statements {
  readonly byId: string
  readonly byTag: string
}

/** The direction in which a statement walks along an index. */
const directions = {
  asc: { start: '>=', end: '<=', way: '' },
  desc: { start: '<=', end: '>=', way: 'DESC' },
} as const satisfies Record<Order, object>
type Direction = (typeof directions)[Order]

/**
 * Builds both statements, given the text before FROM and the text at the end. The plants of a tag
 * are one range of the index by key and id. Only a row comparison makes the planner use it: with an
 * equality it reads and sorts the whole tag if it expects few plants, and walks along the ids of
 * all plants if it expects many.
 */
function toStatements({ start, end, way }: Direction, before: string, after = ''): Statements {
  return {
    byId: `${before} FROM plant_store.plants
      WHERE id ${start} $1::bigint ORDER BY id ${way} LIMIT $2::bigint ${after}`,
    byTag: `${before} FROM plant_store.plants
      WHERE (plant_store.tag_key(tag), id) ${start} (plant_store.tag_key($4), $1::bigint)
        AND plant_store.tag_key(tag) ${end} plant_store.tag_key($4) AND tag IS NOT NULL
      ORDER BY plant_store.tag_key(tag) ${way}, id ${way} LIMIT $2::bigint ${after}`,
  }
}

function inBothOrders(make: (direction: Direction) => Statements): Record<Order, Statements> {
  return { asc: make(directions.asc), desc: make(directions.desc) }
}

function select<Row extends Texts>(
  sql: Sql,
  statements: Record<Order, Statements>,
  { after, tag, order = 'asc', limit }: ListQuery,
  mostBytes: number,
) {
  const from = toFirstId(after, order)
  if (from === undefined) return []
  const { byId, byTag } = statements[order]
  return tag === undefined
    ? sql.texts<Row>(byId, [from, limit, mostBytes])
    : sql.texts<Row>(byTag, [from, limit, mostBytes, tag])
}

const page = inBothOrders((direction) =>
  toStatements(
    direction,
    `SELECT id, CASE WHEN pg_catalog.octet_length(name) + coalesce(pg_catalog.octet_length(tag), 0)
        <= $3::integer THEN name END AS name,
      CASE WHEN pg_catalog.octet_length(tag) <= $3::integer THEN tag END AS tag`,
  ),
)

/**
 * Reads one page. The server omits the texts of a plant that exceeds its share of the page. In that
 * case only the beginning of the page is read.
 */
export async function listPlants(sql: Sql, query: ListQuery): Promise<PlantPage> {
  const plants: StoredPlant[] = []
  const share = Math.floor(limits.pageBytes / query.limit)
  for (const row of await select<PlantRow | LargeRow>(sql, page, query, share)) {
    if (row[1] === null) return listBeginning(sql, query)
    plants.push(toStored(row))
  }
  return { plants, isWhole: true }
}

const beginning = inBothOrders((direction) => {
  const order = `ORDER BY id ${direction.way}`
  return toStatements(
    direction,
    `SELECT id, name, tag, found FROM (
      SELECT *, pg_catalog.sum(pg_catalog.octet_length(name)
          + coalesce(pg_catalog.octet_length(tag), 0)) OVER (${order}) AS bytes,
        pg_catalog.row_number() OVER (${order}) AS place,
        pg_catalog.count(*) OVER () AS found
      FROM (SELECT id, name, tag`,
    `) AS page) AS measured WHERE bytes <= $3::integer OR place = 1 ${order}`,
  )
})

/**
 * Reads the beginning of a page, up to 1 MiB. The server knows the lengths without reading the
 * texts.
 */
async function listBeginning(sql: Sql, query: ListQuery): Promise<PlantPage> {
  const rows = await select<PlantRow<[found: string]>>(sql, beginning, query, limits.pageBytes)
  return { plants: rows.map(toStored), isWhole: rows.length === Number(rows[0]?.[3] ?? 0) }
}

export async function countPlants(sql: Sql, tag: string | undefined): Promise<number> {
  const [row] = await (tag === undefined
    ? sql<[{ count: string }]>`SELECT pg_catalog.count(*) FROM plant_store.plants`
    : sql<[{ count: string }]>`SELECT pg_catalog.count(*) FROM plant_store.plants
        WHERE plant_store.tag_key(tag) = plant_store.tag_key(${tag}) AND tag IS NOT NULL`)
  return Number(row.count)
}
