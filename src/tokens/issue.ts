import { plantScopes, type Scope } from '../contract/scopes.ts'
import type { Store, TokenRecord } from '../store/store.ts'
import { hashToken, newToken, newTokenId } from './format.ts'

export interface TokenRequest {
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly lifetimeMs: number | undefined
}

/** A new token. Only its hash is stored, so it cannot be shown again. */
export interface IssuedToken {
  readonly token: string
  readonly record: TokenRecord
}

/** Makes a token and stores its hash. */
export async function issueToken(
  store: Store,
  request: TokenRequest,
  now = Date.now(),
): Promise<IssuedToken> {
  const issued = buildToken(request, now)
  await store.addToken(issued.record)
  return issued
}

/** What the first token of a store may do. */
export const firstTokenRequest = { name: 'first', scopes: plantScopes, lifetimeMs: undefined }

/** Makes the first token of an empty store. Of several processes that start, only one makes it. */
export async function issueFirstToken(store: Store): Promise<IssuedToken | undefined> {
  // Looks first: a service that needs no token must also start on a full disk.
  if ((await store.listTokens()).length > 0) return undefined
  const issued = buildToken(firstTokenRequest, Date.now())
  return (await store.addFirstToken(issued.record)) === 'added' ? issued : undefined
}

function buildToken(request: TokenRequest, createdAt: number): IssuedToken {
  const token = newToken()
  const record = {
    id: newTokenId(),
    hash: hashToken(token),
    name: request.name,
    scopes: request.scopes,
    createdAt,
    expiresAt: request.lifetimeMs && createdAt + request.lifetimeMs,
    revokedAt: undefined,
    lastUsedAt: undefined,
    lastFour: token.slice(-4),
  }
  return { token, record }
}
