import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { listen } from './listen.ts'

export const audience = 'https://plants.test'

/** A key of an issuer: what it signs with, and what it publishes. */
export type IssuerKey = Awaited<ReturnType<typeof newKey>>

/** An issuer of JSON Web Tokens. A test can replace its keys and its answers. */
export type TestIssuer = Awaited<ReturnType<typeof startIssuer>>

export async function newKey(alg: string, kid = `key-${alg}`) {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

/** The time in seconds, as claims have it. */
export function nowSeconds(): number {
  return Math.floor(Date.now() / 1_000)
}

/** Starts an issuer that publishes these keys. It is closed with the test. */
export async function startIssuer(keys: readonly IssuerKey[]) {
  const server = createServer((request, response) => {
    issuer.asked.push(request.url ?? '')
    if (issuer.answer(request, response)) return
    const isDiscovery = request.url === '/.well-known/openid-configuration'
    const body = isDiscovery
      ? { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` }
      : { keys: issuer.keys }
    response.end(JSON.stringify(body))
  })
  const url = await listen(server)
  const issuer = {
    url,
    /** What the service needs to trust it. */
    env: { AUTH_ISSUER: url, AUTH_AUDIENCE: audience },
    /** The keys that it publishes. */
    keys: keys.map(({ jwk }): JWK => jwk),
    /** The paths of the requests that it got. */
    asked: [] as string[],
    /** Answers in its place, if it returns true. */
    answer: (_request: IncomingMessage, _response: ServerResponse): boolean => false,
    /** Signs these claims, beside those that a token needs. */
    sign: ({ kid, alg, privateKey }: IssuerKey, claims: object = {}, header: object = {}) =>
      new SignJWT({ ...toClaims(url), ...claims })
        .setProtectedHeader({ alg, kid, ...header })
        .sign(privateKey),
  }
  return issuer
}

/** The claims of a token that is good for everything with plants. */
export function toClaims(issuer: string) {
  const exp = nowSeconds() + 600
  return { iss: issuer, aud: audience, sub: 'alice', exp, scope: 'plants:read plants:write' }
}
