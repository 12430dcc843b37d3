import type { Scope } from '../contract/scopes.ts'
import type { TokenRecord } from './store.ts'

/** A row of the table of tokens. Engines return 64-bit integers as bigint or as text. */
export interface TokenRow {
  readonly id: string
  readonly hash: Uint8Array
  readonly name: string
  readonly scopes: string
  readonly created_at: bigint | string
  readonly expires_at: bigint | string | null
  readonly revoked_at: bigint | string | null
  readonly last_used_at: bigint | string | null
  readonly last_four: string | null
}

export function toRecord(row: TokenRow): TokenRecord {
  return {
    id: row.id,
    hash: Buffer.from(row.hash),
    name: row.name,
    scopes: row.scopes.split(' ') as Scope[],
    createdAt: Number(row.created_at),
    expiresAt: toTime(row.expires_at),
    revokedAt: toTime(row.revoked_at),
    lastUsedAt: toTime(row.last_used_at),
    lastFour: row.last_four ?? undefined,
  }
}

function toTime(value: bigint | string | null): number | undefined {
  return value === null ? undefined : Number(value)
}
