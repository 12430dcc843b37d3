import type { TokenRecord } from '../../src/store/store.ts'

/** A token as a store keeps it, with these members instead of the usual ones. */
export function newTokenRecord(members: Partial<TokenRecord> = {}): TokenRecord {
  return {
    id: 'tok_1',
    hash: Buffer.alloc(32),
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
