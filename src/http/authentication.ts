import { Failure } from '../contract/errors.ts'
import type { Grant, TokenVerifier } from '../tokens/verify.ts'

const scheme = 'Bearer '

/** The grant of the token in the header `Authorization`. Tokens elsewhere are ignored. */
export function authenticate(
  authorization: string | undefined,
  tokens: TokenVerifier,
  now?: number,
): Grant | Promise<Grant> {
  const token = toToken(authorization)
  if (token === '') {
    throw new Failure(40100, 'A token is needed: send the header "Authorization: Bearer <token>".')
  }
  return tokens.verify(token, now)
}

function toToken(authorization = ''): string {
  return isBearer(authorization) ? authorization.slice(scheme.length).trim() : ''
}

/** The scheme may be written in any case. Nearly every client writes it as we do. */
function isBearer(authorization: string): boolean {
  if (authorization.startsWith(scheme)) return true
  return authorization.slice(0, scheme.length).toLowerCase() === scheme.toLowerCase()
}
