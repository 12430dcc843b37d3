import { Failure } from '../contract/errors.ts'
import type { Scope } from '../contract/scopes.ts'

/** The rights of a verified token. Grants are kept until a token is revoked. */
export interface Grant {
  readonly tokenId: string
  readonly scopes: ReadonlySet<Scope>
  readonly expiresAt: number
  lastUsedAt: number
  /**
   * The token revision at the time of the look-up: grants from before the last revocation no longer
   * count. JSON Web Tokens cannot be revoked.
   */
  readonly revision: bigint | 'issuer' | undefined
}

export function expired(): Failure {
  return new Failure(40102, 'The token has expired. Get a new one.')
}
