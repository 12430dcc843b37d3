import type { DatabaseSync } from 'node:sqlite'
import type { TokenRecord, TokenUse } from '../store.ts'
import { type TokenRow, toRecord } from '../token-row.ts'

const columns =
  'id, hash, name, scopes, created_at, expires_at, revoked_at, last_used_at, last_four'
const placeholders = '?, ?, ?, ?, ?, ?, ?, ?, ?'

/** The statements on tokens. Those that write run inside the transaction of a batch. */
export function buildTokenStatements(db: DatabaseSync) {
  const insert = db.prepare(`INSERT INTO tokens (${columns}) VALUES (${placeholders})`)
  const insertFirst = db.prepare(
    `INSERT INTO tokens (${columns}) SELECT ${placeholders}
     WHERE NOT EXISTS (SELECT 1 FROM tokens) AND NOT EXISTS (SELECT 1 FROM plants)`,
  )
  const selectByHash = db.prepare(`SELECT ${columns} FROM tokens WHERE hash = ?`)
  const selectById = db.prepare(`SELECT ${columns} FROM tokens WHERE id = ?`)
  const selectAll = db.prepare(`SELECT ${columns} FROM tokens ORDER BY created_at, id`)
  const revoke = db.prepare('UPDATE tokens SET revoked_at = ? WHERE id = ?')
  const deleteOne = db.prepare('DELETE FROM tokens WHERE id = ?')
  const noteUse = db.prepare(
    'UPDATE tokens SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE id = ?',
  )
  const bumpRevision = db.prepare('UPDATE token_revision SET revision = revision + 1')
  const selectRevision = db.prepare('SELECT revision FROM token_revision')

  return {
    add(token: TokenRecord): void {
      insert.run(...toValues(token))
    },

    addFirst(token: TokenRecord): 'added' | 'not first' {
      return insertFirst.run(...toValues(token)).changes === 1n ? 'added' : 'not first'
    },

    find(hash: Buffer): TokenRecord | undefined {
      const row = selectByHash.get(hash)
      return row && toRecord(row as unknown as TokenRow)
    },

    list(): TokenRecord[] {
      return (selectAll.all() as unknown as TokenRow[]).map(toRecord)
    },

    revoke(id: string, at: number): 'revoked' | 'revoked before' | 'unknown' {
      const row = selectById.get(id) as unknown as TokenRow | undefined
      if (row === undefined) return 'unknown'
      if (row.revoked_at !== null) return 'revoked before'
      revoke.run(at, id)
      bumpRevision.run()
      return 'revoked'
    },

    delete(ids: readonly string[]): number {
      const deleted = ids.filter((id) => deleteOne.run(id).changes === 1n).length
      if (deleted > 0) bumpRevision.run()
      return deleted
    },

    noteUses(uses: readonly TokenUse[]): void {
      for (const { id, at } of uses) noteUse.run(at, id)
    },

    revision(): bigint {
      return (selectRevision.get() as { revision: bigint }).revision
    },
  }
}

function toValues(token: TokenRecord) {
  return [
    token.id,
    token.hash,
    token.name,
    token.scopes.join(' '),
    token.createdAt,
    token.expiresAt ?? null,
    token.revokedAt ?? null,
    token.lastUsedAt ?? null,
    token.lastFour ?? null,
  ] as const
}
