import { Failure } from '../contract/errors.ts'
import type { Scope } from '../contract/scopes.ts'

/** The rights of a verified token. None is kept after a token is revoked or keys change. */
export interface Grant {
  readonly tokenId: string
  readonly scopes: ReadonlySet<Scope>
  readonly expiresAt: number
  lastUsedAt: number
  /** At the time of the look-up: grants from before the last revocation no longer count. */
  readonly revision: string | undefined
}

export function expired(): Failure {
  return new Failure(40102, 'The token has expired. Get a new one.')
}
