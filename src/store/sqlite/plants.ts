import { hash } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { limits } from '../../contract/limits.ts'
import type { Order } from '../../contract/parameters.ts'
import type { Rows } from '../changes.ts'
import { toFirstId } from '../lists.ts'
import type { ListQuery, VersionedPlant } from '../store.ts'
import { prepareRows } from './database.ts'

/** Rows are arrays, because in the binding the names of columns cost more than their values. */
type PlantRow = [id: bigint, name: string, tag: string | null, version: bigint]
type KeyRow = [fingerprint: Uint8Array, version: bigint, usedAt: bigint]

const columns = 'id, name, tag, version'
/** A page is read this many plants at a time: plants of older releases may be large. */
const plantsPerRead = 128

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
    asc: { byId: prepareList(db, 'asc'), byTag: prepareList(db, 'asc', hasTag('?3')) },
    desc: { byId: prepareList(db, 'desc'), byTag: prepareList(db, 'desc', hasTag('?3')) },
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

    /** Reads a page of 1 MiB at most, but at least one plant. */
    list({ after, tag, order = 'asc', limit }: ListQuery) {
      const { byId, byTag } = lists[order]
      const plants: VersionedPlant[] = []
      let bytes = 0
      let from = toFirstId(after, order)
      while (from !== undefined && plants.length < limit) {
        const wanted = Math.min(limit - plants.length, plantsPerRead)
        const rows =
          tag === undefined ? byId.all(from, wanted) : byTag.all(from, wanted, toIndexKey(tag))
        for (const row of rows as unknown as PlantRow[]) {
          const plant = toPlant(row)
          bytes += Buffer.byteLength(plant.name)
          if (plant.tag !== undefined) bytes += Buffer.byteLength(plant.tag)
          if (bytes > limits.pageBytes && plants.length > 0) {
            return { plants, next: plants.at(-1)?.id }
          }
          plants.push(plant)
        }
        from = rows.length < wanted ? undefined : toFirstId(plants.at(-1)?.id, order)
      }
      return { plants, next: undefined }
    },

    count(tag: string | undefined): number {
      const row = tag === undefined ? count.get() : countByTag.get(toIndexKey(tag))
      return Number(row?.count)
    },
  }
}

/** A list of the plants that meet a condition: from the id `?1` on, at most `?2` of them. */
function prepareList(db: DatabaseSync, order: Order, condition = 'TRUE') {
  const [start, way] = order === 'asc' ? ['>=', ''] : ['<=', 'DESC']
  // SQLite plans a statement again whenever a parameter that is a limit is set, but not a sum.
  const rest = `WHERE ${condition} AND id ${start} ?1 ORDER BY id ${way} LIMIT ?2 + 0`
  return prepareRows(db, `SELECT ${columns} FROM plants ${rest}`)
}

function toPlant([id, name, tag, version]: PlantRow): VersionedPlant {
  return tag === null ? { id, name, version } : { id, name, tag, version }
}
