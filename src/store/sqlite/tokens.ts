import type { DatabaseSync } from 'node:sqlite'
import type { TokenRecord, TokenUse } from '../store.ts'
import { type TokenRow, tokenColumns, toToken, toTokenRow } from '../table-rows.ts'
import { toParameters } from './open-database.ts'

/** The statements on tokens. Those that write run inside the transaction of a batch. */
export function buildTokenStatements(db: DatabaseSync) {
  const put = `INSERT INTO tokens (${tokenColumns}) SELECT ${toParameters(tokenColumns)}`
  const insert = db.prepare(put)
  const insertFirst = db.prepare(
    `${put} WHERE NOT EXISTS (SELECT 1 FROM tokens) AND NOT EXISTS (SELECT 1 FROM plants)`,
  )
  const selectByHash = db.prepare(`SELECT ${tokenColumns} FROM tokens WHERE hash = ?`)
  const selectRevoked = db.prepare('SELECT revoked_at FROM tokens WHERE id = ?')
  const selectAll = db.prepare(`SELECT ${tokenColumns} FROM tokens ORDER BY created_at, id`)
  const revoke = db.prepare('UPDATE tokens SET revoked_at = ? WHERE id = ?')
  const deleteOne = db.prepare('DELETE FROM tokens WHERE id = ?')
  const noteUse = db.prepare(
    'UPDATE tokens SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE id = ?',
  )
  const bumpRevision = db.prepare('UPDATE token_revision SET revision = revision + 1')
  const selectRevision = db.prepare('SELECT revision FROM token_revision')

  const writes = {
    addToken(token: TokenRecord): void {
      insert.run(toTokenRow(token))
    },

    addFirstToken(token: TokenRecord): 'added' | 'not first' {
      return insertFirst.run(toTokenRow(token)).changes === 1n ? 'added' : 'not first'
    },

    revokeToken(id: string, at: number): 'revoked' | 'revoked before' | 'unknown' {
      const row = selectRevoked.get(id)
      if (row === undefined) return 'unknown'
      if (row.revoked_at !== null) return 'revoked before'
      revoke.run(at, id)
      bumpRevision.run()
      return 'revoked'
    },

    deleteTokens(ids: readonly string[]): number {
      const deleted = ids.filter((id) => deleteOne.run(id).changes === 1n).length
      if (deleted > 0) bumpRevision.run()
      return deleted
    },

    noteTokenUses(uses: readonly TokenUse[]): void {
      for (const { id, at } of uses) noteUse.run(at, id)
    },
  }

  return {
    writes,
    find(hash: Buffer): TokenRecord | undefined {
      const row = selectByHash.get(hash) as unknown as TokenRow | undefined
      return row && toToken(row)
    },
    list: (): TokenRecord[] => (selectAll.all() as unknown as TokenRow[]).map(toToken),
    revision: (): bigint => (selectRevision.get() as { revision: bigint }).revision,
  }
}
