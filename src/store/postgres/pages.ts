import { limits } from '../../contract/limits.ts'
import type { Order } from '../../contract/parameters.ts'
import type { StoredPlant } from '../../contract/shapes.ts'
import { toFirstId } from '../lists.ts'
import type { ListQuery, PlantPage } from '../store.ts'
import { type PlantRow, toStored } from './plants.ts'
import type { Sql } from './sql.ts'

/** How many plants are read at a time, so that a page of large ones is not read to its end. */
const plantsPerRead = 128

/** The direction in which a statement walks along an index. */
const directions = {
  asc: { start: '>=', end: '<=', way: '' },
  desc: { start: '<=', end: '>=', way: 'DESC' },
} as const satisfies Record<Order, object>
type Direction = (typeof directions)[Order]

/**
 * The statements on the plants from an id on. The plants of a tag are one range of the index by key
 * and id. Only a row comparison makes the planner use it: with an equality it reads and sorts the
 * whole tag if it expects few plants, and walks along the ids of all plants if it expects many.
 */
function toStatements({ start, end, way }: Direction) {
  const selection = 'SELECT id, name, tag FROM plant_store.plants'
  return {
    byId: `${selection} WHERE id ${start} $1::bigint ORDER BY id ${way} LIMIT $2::bigint`,
    byTag: `${selection}
      WHERE (plant_store.tag_key(tag), id) ${start} (plant_store.tag_key($3), $1::bigint)
        AND plant_store.tag_key(tag) ${end} plant_store.tag_key($3) AND tag IS NOT NULL
      ORDER BY plant_store.tag_key(tag) ${way}, id ${way} LIMIT $2::bigint`,
  }
}

const statements = { asc: toStatements(directions.asc), desc: toStatements(directions.desc) }

/** Reads one page: up to the limit, or the beginning of it, up to 1 MiB. */
export async function listPlants(sql: Sql, query: ListQuery): Promise<PlantPage> {
  const { tag, order = 'asc', limit } = query
  const { byId, byTag } = statements[order]
  const plants: StoredPlant[] = []
  let bytes = 0
  let from = toFirstId(query.after, order)
  while (from !== undefined && plants.length < limit) {
    const wanted = Math.min(limit - plants.length, plantsPerRead)
    const rows = await (tag === undefined
      ? sql.texts<PlantRow>(byId, [from, wanted])
      : sql.texts<PlantRow>(byTag, [from, wanted, tag]))
    for (const row of rows) {
      const plant = toStored(row)
      bytes += Buffer.byteLength(plant.name) + Buffer.byteLength(plant.tag ?? '')
      if (bytes > limits.pageBytes && plants.length > 0) return { plants, isWhole: false }
      plants.push(plant)
    }
    from = rows.length < wanted ? undefined : toFirstId(plants.at(-1)?.id, order)
  }
  return { plants, isWhole: true }
}

export async function countPlants(sql: Sql, tag: string | undefined): Promise<number> {
  const [row] = await (tag === undefined
    ? sql<[{ count: string }]>`SELECT pg_catalog.count(*) FROM plant_store.plants`
    : sql<[{ count: string }]>`SELECT pg_catalog.count(*) FROM plant_store.plants
        WHERE plant_store.tag_key(tag) = plant_store.tag_key(${tag}) AND tag IS NOT NULL`)
  return Number(row.count)
}
