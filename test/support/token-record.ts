import { randomBytes } from 'node:crypto'
import type { TokenRecord } from '../../src/store/store.ts'

/** A new token as a store keeps it, with these members instead of the usual ones. */
export function newTokenRecord(members: Partial<TokenRecord> = {}): TokenRecord {
  return {
    id: `tok_${randomBytes(6).toString('hex')}`,
    hash: randomBytes(32),
    name: 'test',
    scopes: ['plants:read'],
    createdAt: 1,
    expiresAt: undefined,
    revokedAt: undefined,
    lastUsedAt: undefined,
    lastFour: undefined,
    ...members,
  }
}
