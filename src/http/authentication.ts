import { Failure } from '../contract/errors.ts'
import type { Grant, TokenVerifier } from '../tokens/verify.ts'

const scheme = 'bearer '

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
  if (authorization.slice(0, scheme.length).toLowerCase() !== scheme) return ''
  return authorization.slice(scheme.length).trim()
}
