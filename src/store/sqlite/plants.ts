import type { DatabaseSync } from 'node:sqlite'
import type { KeyUse, Rows } from '../steps.ts'
import { type PlantPage, type PlantQuery, pageBytes, type VersionedPlant } from '../store.ts'

interface PlantRow {
  readonly id: bigint
  readonly name: string
  readonly tag: string | null
  readonly version: bigint
}

interface KeyRow {
  readonly fingerprint: Uint8Array
  readonly version: bigint
  readonly used_at: bigint
}

const columns = 'id, name, tag, version'
const smallestId = -(2n ** 63n)
const largestId = 2n ** 63n - 1n
/** How many keys are forgotten in one step: few enough that nobody waits for it. */
const keysPerStep = 500

/** The statements on plants and keys. Those of `Rows` run inside the transaction of a batch. */
export function buildPlantStatements(db: DatabaseSync) {
  const select = db.prepare(`SELECT ${columns} FROM plants WHERE id = ?`)
  const insert = db.prepare(
    `INSERT INTO plants (${columns}) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
  )
  const update = db.prepare('UPDATE plants SET name = ?, tag = ?, version = ? WHERE id = ?')
  const remove = db.prepare('DELETE FROM plants WHERE id = ?')
  const list = db.prepare(`SELECT ${columns} FROM plants WHERE id >= ? ORDER BY id LIMIT ?`)
  const listByTag = db.prepare(
    `SELECT ${columns} FROM plants WHERE tag = ? AND id >= ? ORDER BY id LIMIT ?`,
  )
  const listIds = db.prepare('SELECT id FROM plants WHERE id >= ? ORDER BY id LIMIT ?')
  const listIdsByTag = db.prepare(
    'SELECT id FROM plants WHERE tag = ? AND id >= ? ORDER BY id LIMIT ?',
  )
  const count = db.prepare('SELECT count(*) AS count FROM plants')
  const countByTag = db.prepare('SELECT count(*) AS count FROM plants WHERE tag = ?')
  const selectKey = db.prepare(
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
      const row = select.get(id)
      return row && toPlant(row as unknown as PlantRow)
    },

    insert({ id, name, tag, version }) {
      return insert.run(id, name, tag ?? null, version).changes === 1n
    },

    update({ id, name, tag, version }) {
      update.run(name, tag ?? null, version, id)
    },

    remove(id) {
      remove.run(id)
    },

    findKey({ tokenId, key }) {
      const row = selectKey.get(tokenId, key) as unknown as KeyRow | undefined
      return row && toKeyUse(row, tokenId, key)
    },

    putKey({ tokenId, key, fingerprint, version, usedAt }) {
      putKey.run(tokenId, key, fingerprint, version, usedAt)
    },
  }

  return {
    rows,

    list({ after, tag, limit }: PlantQuery): PlantPage {
      if (after === largestId) return { plants: [], isWhole: true }
      const from = after === undefined ? smallestId : after + 1n
      const found =
        tag === undefined ? list.iterate(from, limit) : listByTag.iterate(tag, from, limit)
      const plants: VersionedPlant[] = []
      let bytes = 0
      for (const row of found) {
        const plant = toPlant(row as unknown as PlantRow)
        bytes += plant.name.length + (plant.tag?.length ?? 0)
        if (plants.length > 0 && bytes > pageBytes) return { plants, isWhole: false }
        plants.push(plant)
      }
      return { plants, isWhole: true }
    },

    listIds({ after, tag, limit }: PlantQuery): bigint[] {
      if (after === largestId) return []
      const from = after === undefined ? smallestId : after + 1n
      const found =
        tag === undefined ? listIds.all(from, limit) : listIdsByTag.all(tag, from, limit)
      return found.map((row) => row.id as bigint)
    },

    count(tag: string | undefined): number {
      const row = tag === undefined ? count.get() : countByTag.get(tag)
      return Number(row?.count)
    },

    forgetKeys(usedBefore: number): boolean {
      return forgetKeys.run(usedBefore).changes < BigInt(keysPerStep)
    },
  }
}

function toPlant({ id, name, tag, version }: PlantRow): VersionedPlant {
  return tag === null ? { id, name, version } : { id, name, tag, version }
}

function toKeyUse(row: KeyRow, tokenId: string, key: string): KeyUse {
  const { fingerprint, version, used_at } = row
  return { tokenId, key, fingerprint: Buffer.from(fingerprint), version, usedAt: Number(used_at) }
}
