import type { TokenRecord, TokenUse } from '../store.ts'
import { type TokenRow, tokenColumns, toToken, toTokenRow } from '../table-rows.ts'
import { insertRow, type Sql } from './sql.ts'

/** The statements on tokens. Each is atomic. */
export const tokenStatements = {
  add: (sql: Sql, token: TokenRecord) => insertRow(sql, 'tokens', toTokenRow(token)),

  async addFirst(sql: Sql, token: TokenRecord): Promise<'added' | 'not first'> {
    const { id, hash, name, scopes, createdAt, lastFour = null } = token
    const [row] = await sql<[{ is_added: boolean }]>`
      SELECT plant_store.add_first_token(
        ${id}, ${hash}, ${name}, ${scopes.join(' ')}, ${createdAt}, ${lastFour}) AS is_added`
    return row.is_added ? 'added' : 'not first'
  },

  async find(sql: Sql, hash: Buffer): Promise<TokenRecord | undefined> {
    const statement = `SELECT ${tokenColumns} FROM plant_store.tokens WHERE hash = $1`
    const [row] = await sql.run<TokenRow[]>(statement, [hash])
    return row && toToken(row)
  },

  async list(sql: Sql): Promise<TokenRecord[]> {
    const rows = await sql.run<TokenRow[]>(`
      SELECT ${tokenColumns} FROM plant_store.tokens
      ORDER BY created_at, id COLLATE pg_catalog."C"`)
    return rows.map(toToken)
  },

  async revoke(
    sql: Sql,
    id: string,
    at: number,
  ): Promise<'revoked' | 'revoked before' | 'unknown'> {
    const [row] = await sql<{ revoked_at: string | null }[]>`
      WITH before AS (SELECT revoked_at FROM plant_store.tokens WHERE id = ${id} FOR UPDATE),
      revoked AS (UPDATE plant_store.tokens SET revoked_at = ${at}
        WHERE id = ${id} AND revoked_at IS NULL RETURNING id),
      counted AS (UPDATE plant_store.token_revision SET revision = revision + 1
        WHERE EXISTS (SELECT FROM revoked))
      SELECT revoked_at FROM before`
    if (row === undefined) return 'unknown'
    return row.revoked_at === null ? 'revoked' : 'revoked before'
  },

  async delete(sql: Sql, ids: readonly string[]): Promise<number> {
    const [row] = await sql<[{ deleted: string }]>`
      WITH deleted AS (DELETE FROM plant_store.tokens
        WHERE id = ANY(${ids}::text[]) RETURNING id),
      counted AS (UPDATE plant_store.token_revision SET revision = revision + 1
        WHERE EXISTS (SELECT FROM deleted))
      SELECT pg_catalog.count(*) AS deleted FROM deleted`
    return Number(row.deleted)
  },

  async noteUses(sql: Sql, uses: readonly TokenUse[]): Promise<void> {
    await sql`
      UPDATE plant_store.tokens SET last_used_at = greatest(last_used_at, use.at)
      FROM unnest(${uses.map(({ id }) => id)}::text[], ${uses.map(({ at }) => at)}::bigint[])
        AS use(id, at) WHERE tokens.id = use.id`
  },

  async revision(sql: Sql): Promise<bigint> {
    const [row] = await sql<[{ revision: string }]>`SELECT revision FROM plant_store.token_revision`
    return BigInt(row.revision)
  },
}
