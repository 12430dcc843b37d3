import { limits } from '../../contract/limits.ts'
import type { Order } from '../../contract/parameters.ts'
import type { StoredPlant } from '../../contract/shapes.ts'
import { toFirstId } from '../lists.ts'
import type { ListQuery, PlantPage, Snapshot } from '../store.ts'
import { listTokens } from '../token-steps.ts'
import { Lost, toReadFailure, withTimeout } from './failures.ts'
import { type PlantRow, toStored, toVersionedPlant, type VersionedRow } from './plants.ts'
import type { Session } from './primary.ts'
import { runSteps, type Sql } from './sql.ts'

/** How many plants are read at a time, so that a page of large ones is not read to its end. */
const plantsPerRead = 256

/**
 * The statements on the plants from an id on. The plants of a tag are one range of the index by key
 * and id. Only a row comparison makes the planner use it: with an equality it reads and sorts the
 * whole tag if it expects few plants, and walks along the ids of all plants if it expects many.
 */
function toStatements(columns: string, order: Order) {
  const [start, end, way] = order === 'asc' ? ['>=', '<=', ''] : ['<=', '>=', 'DESC']
  const selection = `SELECT ${columns} FROM plant_store.plants`
  return {
    byId: `${selection} WHERE id ${start} $1::bigint ORDER BY id ${way} LIMIT $2::bigint`,
    byTag: `${selection}
      WHERE (plant_store.tag_key(tag), id) ${start} (plant_store.tag_key($3), $1::bigint)
        AND plant_store.tag_key(tag) ${end} plant_store.tag_key($3) AND tag IS NOT NULL
      ORDER BY plant_store.tag_key(tag) ${way}, id ${way} LIMIT $2::bigint`,
  }
}

const listing = {
  asc: toStatements('id, name, tag', 'asc'),
  desc: toStatements('id, name, tag', 'desc'),
}
const walking = toStatements('id, name, tag, version', 'asc')

/** Reads the plants of a query with some statements, each when the rows before it are used. */
async function* readRows<Row extends PlantRow<string[]>>(
  sql: Sql,
  { byId, byTag }: ReturnType<typeof toStatements>,
  { after, tag, order = 'asc', limit }: ListQuery,
): AsyncGenerator<Row[], void> {
  let left = limit
  let from = toFirstId(after, order)
  while (from !== undefined && left > 0) {
    const wanted = Math.min(left, plantsPerRead)
    const rows = await (tag === undefined
      ? sql.texts<Row>(byId, [from, wanted])
      : sql.texts<Row>(byTag, [from, wanted, tag]))
    yield rows
    left -= wanted
    const last = rows.length < wanted ? undefined : rows.at(-1)
    from = last && toFirstId(BigInt(last[0]), order)
  }
}

/** Reads one page: up to the limit, or the beginning of it, up to 1 MiB. */
export async function listPlants(sql: Sql, query: ListQuery): Promise<PlantPage> {
  const plants: StoredPlant[] = []
  let bytes = 0
  for await (const rows of readRows<PlantRow>(sql, listing[query.order ?? 'asc'], query)) {
    for (const row of rows) {
      const plant = toStored(row)
      bytes += Buffer.byteLength(plant.name) + Buffer.byteLength(plant.tag ?? '')
      if (bytes > limits.pageBytes && plants.length > 0) return { plants, next: plants.at(-1)?.id }
      plants.push(plant)
    }
  }
  return { plants, next: undefined }
}

async function countPlants(sql: Sql, tag: string | undefined): Promise<number> {
  const [row] = await (tag === undefined
    ? sql<[{ count: string }]>`SELECT pg_catalog.count(*) FROM plant_store.plants`
    : sql<[{ count: string }]>`SELECT pg_catalog.count(*) FROM plant_store.plants
        WHERE plant_store.tag_key(tag) = plant_store.tag_key(${tag}) AND tag IS NOT NULL`)
  return Number(row.count)
}

/**
 * Opens a transaction on a connection of its own, which sees the store as of its first statement.
 * If an answer is late, the connection is destroyed and the snapshot fails.
 */
export async function openSnapshot(session: Session, answerTimeoutMs: number): Promise<Snapshot> {
  const { sql, end, destroy } = await session.openDedicated().catch((error) => {
    throw toReadFailure(error)
  })

  async function read<Value>(statement: Promise<Value>): Promise<Value> {
    try {
      return await statement
    } catch (error) {
      if (error instanceof Lost) destroy()
      throw toReadFailure(error)
    }
  }

  const readSoon = <Value>(statement: Promise<Value>) =>
    read(withTimeout(statement, answerTimeoutMs))

  try {
    await readSoon(sql`BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY`)
    // The caller bounds the time of an export. Which of these there are depends on the server.
    await readSoon(sql`SELECT pg_catalog.set_config(name, '0', TRUE) FROM pg_catalog.pg_settings
      WHERE name IN ('statement_timeout', 'transaction_timeout',
        'idle_in_transaction_session_timeout')`)
  } catch (error) {
    destroy()
    throw error
  }
  return {
    countPlants: (tag) => read(countPlants(sql, tag)),
    async *walkPlants(query) {
      const pages = readRows<VersionedRow>(sql, walking, query)
      for (;;) {
        const { value, done } = await readSoon(pages.next())
        if (done) return
        yield value.map(toVersionedPlant)
      }
    },
    listTokens: () => readSoon(runSteps(sql, listTokens())),
    close: () => end(0),
  }
}
