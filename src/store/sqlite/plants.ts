import { hash } from 'node:crypto'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { limits } from '../../contract/limits.ts'
import type { Rows } from '../changes.ts'
import { toFirstId } from '../lists.ts'
import type { ListQuery, PlantPage, VersionedPlant } from '../store.ts'

/** Rows are arrays, because in the binding the names of columns cost more than their values. */
type PlantRow = [id: bigint, name: string, tag: string | null, version: bigint]
type KeyRow = [fingerprint: Uint8Array, version: bigint, usedAt: bigint]
/** A plant that exceeds its share of the page, without its texts. */
type SparseRow = [id: bigint, name: string | null, tag: string | null, version: bigint]

/** A page with the versions of its plants. */
export interface VersionedPage extends PlantPage {
  readonly plants: readonly VersionedPlant[]
}

const columns = 'id, name, tag, version'
/** The columns, without texts longer than `?1` bytes. SQLite knows the length without reading. */
const sparseColumns = `id,
  iif(octet_length(name) + ifnull(octet_length(tag), 0) <= ?1, name, NULL),
  iif(octet_length(tag) <= ?1, tag, NULL),
  version`
const ascending = { fromId: 'id >= ?2', byId: 'ORDER BY id' }
const descending = { fromId: 'id <= ?2', byId: 'ORDER BY id DESC' }
/** The keys deleted in one step: few enough not to delay requests. */
const keysPerStep = 500

/** Longer tags are indexed by their hash, so that a look-up reads no more than this of a tag. */
export const maxIndexedBytes = 100

/** The value of the column `tag_key`: the hash of a long tag; null for any other, and for none. */
export function toTagKey(tag: string | undefined): Buffer | null {
  if (tag === undefined || Buffer.byteLength(tag) <= maxIndexedBytes) return null
  return hash('sha256', tag, 'buffer')
}

/** The condition that finds the plants of a tag through the index. */
function hasTag(parameter: string): string {
  return `coalesce(tag_key, tag) = ${parameter} AND tag IS NOT NULL`
}

/** The key of a tag in the index. */
function toIndexKey(tag: string): string | Buffer {
  return toTagKey(tag) ?? tag
}

/** The statements on plants and keys. Those of `Rows` run inside the transaction of a batch. */
export function buildPlantStatements(db: DatabaseSync) {
  const select = prepareRows(db, `SELECT ${columns} FROM plants WHERE id = ?`)
  const insert = db.prepare(
    `INSERT INTO plants (${columns}, tag_key) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
  )
  const update = db.prepare(
    'UPDATE plants SET name = ?, tag = ?, version = ?, tag_key = ? WHERE id = ?',
  )
  const remove = db.prepare('DELETE FROM plants WHERE id = ?')
  const lists = {
    asc: { byId: buildList(db, ascending), byTag: buildList(db, ascending, hasTag('?4')) },
    desc: { byId: buildList(db, descending), byTag: buildList(db, descending, hasTag('?4')) },
  }
  const count = db.prepare('SELECT count(*) AS count FROM plants')
  const countByTag = db.prepare(`SELECT count(*) AS count FROM plants WHERE ${hasTag('?1')}`)
  const selectKey = prepareRows(
    db,
    'SELECT fingerprint, version, used_at FROM keys WHERE token_id = ? AND key = ?',
  )
  const putKey = db.prepare(
    'INSERT OR REPLACE INTO keys (token_id, key, fingerprint, version, used_at) VALUES (?, ?, ?, ?, ?)',
  )
  const forgetKeys = db.prepare(
    `DELETE FROM keys WHERE (token_id, key) IN
     (SELECT token_id, key FROM keys WHERE used_at < ? ORDER BY used_at LIMIT ${keysPerStep})`,
  )

  const rows: Rows = {
    find(id) {
      const row = select.get(id) as PlantRow | undefined
      return row && toPlant(row)
    },

    insert({ id, name, tag, version }) {
      return insert.run(id, name, tag ?? null, version, toTagKey(tag)).changes === 1n
    },

    update({ id, name, tag, version }) {
      update.run(name, tag ?? null, version, toTagKey(tag), id)
    },

    delete({ id }) {
      remove.run(id)
    },

    findKey({ tokenId, key }) {
      const row = selectKey.get(tokenId, key) as unknown as KeyRow | undefined
      if (row === undefined) return undefined
      const [fingerprint, version, usedAt] = row
      return { tokenId, key, fingerprint, version, usedAt: Number(usedAt) }
    },

    putKey({ tokenId, key, fingerprint, version, usedAt }) {
      putKey.run(tokenId, key, fingerprint, version, usedAt)
    },
  }

  return {
    rows,

    list({ after, tag, order = 'asc', limit }: ListQuery): VersionedPage {
      const from = toFirstId(after, order)
      if (from === undefined) return { plants: [], isWhole: true }
      const { byId, byTag } = lists[order]
      return tag === undefined ? byId(from, limit) : byTag(from, limit, toIndexKey(tag))
    },

    count(tag: string | undefined): number {
      const row = tag === undefined ? count.get() : countByTag.get(toIndexKey(tag))
      return Number(row?.count)
    },

    forgetKeys(usedBefore: number): boolean {
      return forgetKeys.run(usedBefore).changes < BigInt(keysPerStep)
    },
  }
}

/** Reads pages of the plants that meet a condition: `?2` is the first id, `?4` the key of a tag. */
function buildList(db: DatabaseSync, { fromId, byId }: typeof ascending, condition = 'TRUE') {
  // SQLite plans a statement again whenever a parameter that is a limit is set, but not a sum.
  const rest = `FROM plants WHERE ${condition} AND ${fromId} ${byId} LIMIT ?3 + 0`
  const selectSparse = prepareRows(db, `SELECT ${sparseColumns} ${rest}`)
  const select = prepareRows(db, `SELECT ${columns} ${rest}`)

  return (from: bigint, limit: number, ...others: (string | Buffer)[]): VersionedPage => {
    // Reading all rows at once is fast, and the page fits if no plant exceeds its share.
    const rows = selectSparse.all(Math.floor(limits.pageBytes / limit), from, limit, ...others)
    return (rows as unknown as SparseRow[]).every(isComplete)
      ? { plants: (rows as unknown as PlantRow[]).map(toPlant), isWhole: true }
      : readBeginning(select.iterate(0, from, limit, ...others) as Iterable<unknown>)
  }
}

function isComplete([, name]: SparseRow): boolean {
  return name !== null
}

/** The beginning of a page, up to 1 MiB. */
function readBeginning(rows: Iterable<unknown>): VersionedPage {
  const plants: VersionedPlant[] = []
  let bytes = 0
  for (const row of rows) {
    const plant = toPlant(row as PlantRow)
    bytes += Buffer.byteLength(plant.name) + Buffer.byteLength(plant.tag ?? '')
    if (plants.length > 0 && bytes > limits.pageBytes) return { plants, isWhole: false }
    plants.push(plant)
  }
  return { plants, isWhole: true }
}

/** Prepares a statement whose rows come as arrays. */
export function prepareRows(db: DatabaseSync, sql: string): StatementSync {
  const statement = db.prepare(sql)
  statement.setReturnArrays(true)
  return statement
}

function toPlant([id, name, tag, version]: PlantRow): VersionedPlant {
  return tag === null ? { id, name, version } : { id, name, tag, version }
}
