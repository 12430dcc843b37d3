import { Failure } from '../contract/errors.ts'
import type { Grant, TokenVerifier } from '../tokens/verify.ts'

const scheme = 'Bearer '

/** Who calls: the grant of the token in the header `Authorization`, and from nowhere else. */
export function authenticate(
  authorization: string | undefined,
  tokens: TokenVerifier,
): Grant | Promise<Grant> {
  const token = toToken(authorization)
  if (token === '') {
    throw new Failure(40100, 'A token is needed: send the header "Authorization: Bearer <token>".')
  }
  return tokens.verify(token)
}

function toToken(authorization = ''): string {
  return isBearer(authorization) ? authorization.slice(scheme.length).trim() : ''
}

/** Nearly everybody writes the scheme as we do, and any case is right. */
function isBearer(authorization: string): boolean {
  if (authorization.startsWith(scheme)) return true
  return authorization.slice(0, scheme.length).toLowerCase() === scheme.toLowerCase()
}
