import type { Scope } from '../contract/scopes.ts'
import { type Row, type Run, type Steps, sql, toNumber, toText } from './steps.ts'

/** A token as stored: its SHA-256, never the token itself. Times are ms since 1970. */
export type TokenRecord = Readonly<ReturnType<typeof toToken>>

export interface TokenUse {
  readonly id: string
  readonly at: number
}

export type TokenStore = ReturnType<typeof buildTokenStore>

/** Builds the part of the store for tokens and for idempotency keys, which belong to them. */
export function buildTokenStore(read: Run, write: Run) {
  return {
    addToken: (token: TokenRecord) => write(() => add(token)),
    /** Adds the token only if the store has no plant and no token yet. */
    addFirstToken: (token: TokenRecord) => write(() => addFirst(token)),
    findToken: (hash: Buffer) => read(() => find(hash)),
    listTokens: () => read(listTokens),
    revokeToken: (id: string, at: number) => write(() => revoke(id, at)),
    /** Deletes tokens in any state. Returns how many existed. */
    deleteTokens: (ids: readonly string[]) => write(() => remove(ids)),
    /** Records when tokens were last used. Called in bulk, so the times may lag. */
    noteTokenUses: (uses: readonly TokenUse[]) => write(() => noteUses(uses)),
    /** A number that changes with every revocation and deletion, in any process. */
    tokenRevision: () => read(readRevision),
    /** Deletes some of the keys used before this time. Returns whether none are left. */
    forgetKeys: (usedBefore: number) => write(() => forgetKeys(usedBefore)),
  }
}

function* add(token: TokenRecord): Steps<void> {
  const { id, hash, name, scopes, createdAt, expiresAt = null, revokedAt = null } = token
  const { lastUsedAt = null, lastFour = null } = token
  yield sql`
    INSERT INTO plant_store.tokens (id, hash, name, scopes, created_at, expires_at, revoked_at,
      last_used_at, last_four)
    VALUES (${id}, ${hash}, ${name}, ${scopes.join(' ')}, ${createdAt}, ${expiresAt},
      ${revokedAt}, ${lastUsedAt}, ${lastFour})`
}

function* addFirst(token: TokenRecord): Steps<'added' | 'not first'> {
  // This locks the row: of several processes that start at once, the second sees the token.
  yield sql`UPDATE plant_store.token_revision SET revision = revision`
  const [row] = yield sql`
    SELECT EXISTS (SELECT 1 FROM plant_store.tokens) OR EXISTS (SELECT 1 FROM plant_store.plants)
      AS "isUsed"`
  if (row?.isUsed) return 'not first'
  yield* add(token)
  return 'added'
}

/** By name: a newer release may add columns while this one goes on serving requests. */
const columns =
  'id, hash, name, scopes, created_at, expires_at, revoked_at, last_used_at, last_four'
const selection = `SELECT ${columns} FROM plant_store.tokens`

function* find(hash: Buffer): Steps<TokenRecord | undefined> {
  const [row] = yield { text: `${selection} WHERE hash = $1`, values: [hash] }
  return row && toToken(row)
}

/** The oldest first. */
export function* listTokens(): Steps<TokenRecord[]> {
  const rows = yield { text: selection, values: [] }
  const tokens = rows.map(toToken)
  return tokens.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
}

function* revoke(id: string, at: number): Steps<'revoked' | 'revoked before' | 'unknown'> {
  const { count } = yield sql`
    UPDATE plant_store.tokens SET revoked_at = ${at} WHERE id = ${id} AND revoked_at IS NULL`
  if (count === 1) {
    yield* raiseRevision()
    return 'revoked'
  }
  // A write, so that its commit waits for the standby that may not have the first one yet.
  const { count: found } = yield sql`
    UPDATE plant_store.tokens SET revoked_at = revoked_at WHERE id = ${id}`
  return found === 0 ? 'unknown' : 'revoked before'
}

function* remove(ids: readonly string[]): Steps<number> {
  let deleted = 0
  for (const id of ids) {
    const { count } = yield sql`DELETE FROM plant_store.tokens WHERE id = ${id}`
    deleted += count
  }
  if (deleted > 0) yield* raiseRevision()
  return deleted
}

function* noteUses(uses: readonly TokenUse[]): Steps<void> {
  // In the same order in every process, so that two of them do not deadlock.
  for (const { id, at } of uses.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    yield sql`UPDATE plant_store.tokens SET last_used_at = ${at}
      WHERE id = ${id} AND (last_used_at IS NULL OR last_used_at < ${at})`
  }
}

function* raiseRevision(): Steps<void> {
  yield sql`UPDATE plant_store.token_revision SET revision = revision + 1`
}

function* readRevision(): Steps<bigint> {
  const [row] = yield sql`SELECT revision FROM plant_store.token_revision`
  return BigInt(String(row?.revision))
}

/** The keys deleted in one step: few enough not to delay requests. */
const keysPerStep = 500

function* forgetKeys(usedBefore: number): Steps<boolean> {
  const { count } = yield sql`
    DELETE FROM plant_store.keys WHERE (token_id, key) IN (
      SELECT token_id, key FROM plant_store.keys WHERE used_at < ${usedBefore}
      ORDER BY used_at LIMIT ${keysPerStep})`
  return count < keysPerStep
}

function toToken(row: Row) {
  return {
    id: String(row.id),
    hash: Buffer.from(row.hash as Uint8Array) as Buffer,
    name: String(row.name),
    scopes: String(row.scopes).split(' ') as readonly Scope[],
    createdAt: Number(row.created_at),
    expiresAt: toNumber(row.expires_at),
    revokedAt: toNumber(row.revoked_at),
    lastUsedAt: toNumber(row.last_used_at),
    /** The last characters of the token, to recognise a leaked one; unknown for old tokens. */
    lastFour: toText(row.last_four),
  }
}
