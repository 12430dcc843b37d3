import type { TokenRecord } from '../../store/store.ts'

/** A token as `--json` shows it: never the token itself. */
export interface TokenView {
  readonly id: string
  readonly name: string
  readonly scopes: readonly string[]
  readonly state: 'active' | 'expired' | 'revoked'
  readonly createdAt: string | null
  readonly expiresAt: string | null
  readonly revokedAt: string | null
  readonly lastUsedAt: string | null
  readonly lastFour: string | null
}

export function toView(record: TokenRecord): TokenView {
  return {
    id: record.id,
    name: record.name,
    scopes: record.scopes,
    state: toState(record),
    createdAt: toTime(record.createdAt),
    expiresAt: toTime(record.expiresAt),
    revokedAt: toTime(record.revokedAt),
    lastUsedAt: toTime(record.lastUsedAt),
    lastFour: record.lastFour ?? null,
  }
}

function toState({ revokedAt, expiresAt }: TokenRecord): TokenView['state'] {
  if (revokedAt !== undefined) return 'revoked'
  return expiresAt !== undefined && expiresAt <= Date.now() ? 'expired' : 'active'
}

/** A time in RFC 3339. */
export function toTime(time: number | undefined): string | null {
  return time === undefined ? null : new Date(time).toISOString()
}
