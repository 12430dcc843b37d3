import type { StoredPlant } from '../../contract/shapes.ts'
import type { KeyUse, Rows } from '../steps.ts'
import {
  type CreateKey,
  keyLifetimeMs,
  type PlantPage,
  type PlantQuery,
  pageBytes,
  type VersionedPlant,
} from '../store.ts'
import { toIntegerArray, toTextArray } from './arrays.ts'
import type { Sql } from './session.ts'

interface PlantRow {
  readonly id: string
  readonly name: string
  readonly tag: string | null
  readonly version: string
}

type StoredRow = Omit<PlantRow, 'version'>
/** The texts of a plant that is too large for its place on a page are left where they are. */
type SparseRow = Omit<StoredRow, 'name'> & { readonly name: string | null }

interface KeyRow {
  readonly token_id: string
  readonly key: string
  readonly fingerprint: Uint8Array
  readonly version: string
  readonly used_at: string
}

const smallestId = -(2n ** 63n)
const largestId = 2n ** 63n - 1n
const keysPerStep = 500

/** Rows that another transaction changed meanwhile: what was decided from them must be decided again. */
export class StaleRows extends Error {
  constructor() {
    super('the rows were changed by another transaction')
    this.name = 'StaleRows'
  }
}

/** The plants with these ids, each in the place of its id. */
export async function findPlants(
  sql: Sql,
  ids: readonly bigint[],
): Promise<(VersionedPlant | undefined)[]> {
  const rows = await sql<PlantRow[]>`
    SELECT id, name, tag, version FROM plant_store.plants
    WHERE id = ANY(${toIntegerArray(ids)}::bigint[])`
  const byId = new Map(rows.map(toPlant).map((plant) => [plant.id, plant]))
  return ids.map((id) => byId.get(id))
}

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
  return rows.every(isComplete)
    ? { plants: (rows as readonly StoredRow[]).map(toStored), isWhole: true }
    : listBeginning(sql, query)
}

function isComplete({ name }: SparseRow): boolean {
  return name !== null
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

export async function forgetKeys(sql: Sql, usedBefore: number): Promise<boolean> {
  const rows = await sql`
    DELETE FROM plant_store.keys WHERE (token_id, key) IN (
      SELECT token_id, key FROM plant_store.keys WHERE used_at < ${usedBefore}
      ORDER BY used_at LIMIT ${keysPerStep} FOR UPDATE SKIP LOCKED) RETURNING 1`
  return rows.length < keysPerStep
}

/** Rows that were read and locked, changed in memory, and are then written back at once. */
export interface LoadedRows extends Rows {
  save(sql: Sql): Promise<void>
}

/** Locks the rows of these ids and keys, in an order that is the same for everybody. */
export async function loadRows(sql: Sql, ids: bigint[], keys: CreateKey[]): Promise<LoadedRows> {
  const plantRows = await sql<PlantRow[]>`
    SELECT id, name, tag, version FROM plant_store.plants
    WHERE id = ANY(${toIntegerArray(ids)}::bigint[]) ORDER BY id FOR UPDATE`
  const keyRows = keys.length === 0 ? [] : await selectKeys(sql, keys)
  const before = new Map(plantRows.map(toPlant).map((plant) => [plant.id, plant]))
  const plants = new Map(before)
  const uses = new Map(keyRows.map(toKeyUse).map((use) => [toName(use), use]))
  const newUses: KeyUse[] = []

  return {
    find: (id) => plants.get(id),
    insert(plant) {
      if (plants.has(plant.id)) return false
      plants.set(plant.id, plant)
      return true
    },
    update: (plant) => void plants.set(plant.id, plant),
    remove: (id) => void plants.delete(id),
    findKey: (key) => uses.get(toName(key)),
    putKey(use) {
      uses.set(toName(use), use)
      newUses.push(use)
    },

    async save(connection) {
      const changed = [...plants.values()].filter((plant) => plant !== before.get(plant.id))
      const inserted = changed.filter(({ id }) => !before.has(id))
      const updated = changed.filter(({ id }) => before.has(id))
      const removed = [...before.keys()].filter((id) => !plants.has(id))
      const saved = await Promise.allSettled([
        insertPlants(connection, inserted),
        updatePlants(connection, updated),
        removePlants(connection, removed),
        insertKeys(connection, newUses),
      ])
      // Only when all are over: a statement that came after the ROLLBACK would be a transaction of its own.
      for (const outcome of saved) if (outcome.status === 'rejected') throw outcome.reason
    },
  }
}

function selectKeys(sql: Sql, keys: CreateKey[]): Promise<KeyRow[]> {
  const tokenIds = toTextArray(keys.map(({ tokenId }) => tokenId))
  const names = toTextArray(keys.map(({ key }) => key))
  return sql<KeyRow[]>`
    SELECT token_id, key, fingerprint, version, used_at FROM plant_store.keys
    WHERE (token_id, key) IN (SELECT * FROM unnest(${tokenIds}::text[], ${names}::text[]))`
}

async function insertPlants(sql: Sql, plants: VersionedPlant[]): Promise<void> {
  if (plants.length === 0) return
  const rows = await sql`
    INSERT INTO plant_store.plants (id, name, tag, version) SELECT * FROM ${unnest(sql, plants)}
    ON CONFLICT (id) DO NOTHING RETURNING 1`
  if (rows.length !== plants.length) throw new StaleRows()
}

async function updatePlants(sql: Sql, plants: VersionedPlant[]): Promise<void> {
  if (plants.length === 0) return
  await sql`
    UPDATE plant_store.plants SET name = new.name, tag = new.tag, version = new.version
    FROM ${unnest(sql, plants)} AS new(id, name, tag, version) WHERE plants.id = new.id`
}

async function removePlants(sql: Sql, ids: bigint[]): Promise<void> {
  if (ids.length === 0) return
  await sql`DELETE FROM plant_store.plants WHERE id = ANY(${toIntegerArray(ids)}::bigint[])`
}

async function insertKeys(sql: Sql, uses: KeyUse[]): Promise<void> {
  if (uses.length === 0) return
  const sorted = uses.toSorted((a, b) => (toName(a) < toName(b) ? -1 : 1))
  const tokenIds = toTextArray(sorted.map(({ tokenId }) => tokenId))
  const keys = toTextArray(sorted.map(({ key }) => key))
  const hashes = toTextArray(sorted.map((use) => Buffer.from(use.fingerprint).toString('hex')))
  const versions = toIntegerArray(sorted.map(({ version }) => version))
  const times = toIntegerArray(sorted.map(({ usedAt }) => usedAt))
  const rows = await sql`
    INSERT INTO plant_store.keys (token_id, key, fingerprint, version, used_at)
    SELECT token_id, key, decode(fingerprint, 'hex'), version, used_at
    FROM unnest(${tokenIds}::text[], ${keys}::text[], ${hashes}::text[],
      ${versions}::bigint[], ${times}::bigint[]) AS new(token_id, key, fingerprint, version, used_at)
    ON CONFLICT (token_id, key) DO UPDATE SET
      fingerprint = excluded.fingerprint, version = excluded.version, used_at = excluded.used_at
    WHERE keys.used_at <= excluded.used_at - ${keyLifetimeMs}::bigint RETURNING 1`
  if (rows.length !== uses.length) throw new StaleRows()
}

/** Plants as a table, in the order of their ids, so that two batches never lock each other out. */
export function unnest(sql: Sql, plants: readonly VersionedPlant[]) {
  const sorted = plants.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  const ids = toIntegerArray(sorted.map(({ id }) => id))
  const names = toTextArray(sorted.map(({ name }) => name))
  const tags = toTextArray(sorted.map(({ tag = null }) => tag))
  const versions = toIntegerArray(sorted.map(({ version }) => version))
  return sql`unnest(${ids}::bigint[], ${names}::text[], ${tags}::text[], ${versions}::bigint[])`
}

function toName({ tokenId, key }: CreateKey): string {
  return `${tokenId} ${key}`
}

function toPlant(row: PlantRow): VersionedPlant {
  return { ...toStored(row), version: BigInt(row.version) }
}

function toStored({ id, name, tag }: StoredRow): StoredPlant {
  return tag === null ? { id: BigInt(id), name } : { id: BigInt(id), name, tag }
}

function toKeyUse(row: KeyRow): KeyUse {
  return {
    tokenId: row.token_id,
    key: row.key,
    fingerprint: row.fingerprint,
    version: BigInt(row.version),
    usedAt: Number(row.used_at),
  }
}
