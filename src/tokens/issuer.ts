import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { JWTPayload, JWTVerifyGetKey } from 'jose'
import { Failure } from '../contract/errors.ts'
import { isLoopback } from '../contract/loopback.ts'
import { type Scope, scopes } from '../contract/scopes.ts'
import { scan } from '../json/scan.ts'
import { repeat } from '../repeat.ts'
import { expired, type Grant } from './grant.ts'

/**
 * JSON Web Tokens of one issuer, verified by `jose`. It is loaded only where an issuer is set.
 *
 * Keys. The address of the key set comes from OpenID discovery and is kept until it fails. Keys are
 * fetched at the start, without delaying it, then every 10 minutes, or every minute while that
 * fails, and for a token with an unknown key at most once a minute. Until the first fetch succeeds,
 * there is one every 5 s. Only requests with an unknown key wait for the issuer. Known keys stay
 * valid while it is unreachable.
 *
 * Grants. Verified tokens are cached in a map, by the end of their signature: V8 would take longer
 * to hash the whole token than SHA-256 does. A hit is then compared in full. When the keys change,
 * the cache is cleared, because a key may have been withdrawn.
 *
 * Bounds. One request to the issuer at a time, without redirects; 5 s for both answers, of at most
 * 64 and 256 KiB; 1,000 requests waiting for it; 10,000 cached tokens, 16 MiB of them.
 */
export interface Issuer {
  /** The grant of a token that is in the cache. */
  find(token: string): Grant | undefined
  /** Verifies a token. Fails with a `Failure`. */
  verify(token: string): Promise<Grant>
  grants(): Iterable<Grant>
  close(): void
}

/** The issuer that the operator trusts, and the audience that its tokens must name. */
export interface TrustedIssuer {
  readonly url: string
  readonly audience: string
}

export interface IssuerOptions extends TrustedIssuer {
  /** How long the issuer may take for its answers. */
  readonly timeoutMs: number
  /** Called when the issuer stops answering properly, and `onBack` once it does again. */
  readonly onAway: (error: unknown) => void
  readonly onBack: () => void
}

const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA']
const leewaySeconds = 30
const renewMs = 10 * 60_000
/** For a token with an unknown key, and after a fetch that failed. */
const soonMs = 60_000
const firstKeysMs = 5_000
const maxWaiting = 1_000
const maxDiscoveryBytes = 64 * 1024
const maxKeyBytes = 256 * 1024
const maxGrants = 10_000
const maxGrantBytes = 16 * 1024 * 1024
/** This many characters of a signature in base64url hold 256 bits. */
const tailLength = 43

interface Remembered {
  readonly token: string
  readonly grant: Grant
}

/** Whether a URL may name an issuer: https, or http on this machine. */
export function isIssuerUrl(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && isTrustworthy(url) && !url.search && !url.hash
}

function isTrustworthy({ protocol, hostname, username, password }: URL): boolean {
  if (username || password) return false
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
}

/** Whether a token has the three parts of a JSON Web Token. */
export function isJwt(token: string): boolean {
  const first = token.indexOf('.')
  if (first === -1) return false
  const second = token.indexOf('.', first + 1)
  return second !== -1 && !token.includes('.', second + 1)
}

/** Opens the verifier of an issuer's tokens. The issuer may be unreachable at first. */
export function openIssuer(options: IssuerOptions): Issuer {
  const { url: issuer, audience, timeoutMs, onAway, onBack } = options
  const library = import('jose')
  const stop = new AbortController()
  const remembered = new Map<string, Remembered>()
  let rememberedBytes = 0
  let keys: { readonly text: string; readonly find: JWTVerifyGetKey } | undefined
  let keysUrl: URL | undefined
  let state: 'new' | 'away' | 'there' = 'new'
  let fetching: Promise<void> | undefined
  let fetchedAt = 0
  let waiting = 0

  /** Fetches the keys, or waits for the fetch in flight. Never rejects: `state` has the outcome. */
  function fetchKeys(): Promise<void> {
    fetching ??= renewKeys().finally(() => {
      fetching = undefined
    })
    return fetching
  }

  async function renewKeys(): Promise<void> {
    fetchedAt = performance.now()
    const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(timeoutMs)])
    try {
      keysUrl ??= toKeysUrl(
        await fetchText(toDiscoveryUrl(issuer), maxDiscoveryBytes, signal),
        issuer,
      )
      const text = await fetchText(keysUrl, maxKeyBytes, signal)
      if (text !== keys?.text) {
        const { createLocalJWKSet } = await library
        keys = { text, find: createLocalJWKSet(JSON.parse(text)) }
        remembered.clear()
        rememberedBytes = 0
      }
      if (state === 'away') onBack()
      state = 'there'
    } catch (error) {
      keysUrl = undefined
      if (state !== 'away' && !stop.signal.aborted) onAway(error)
      state = 'away'
    }
  }

  const findKey: JWTVerifyGetKey = async (header, token) => {
    const { JWKSNoMatchingKey } = (await library).errors
    try {
      if (keys !== undefined) return await keys.find(header, token)
    } catch (error) {
      if (!(error instanceof JWKSNoMatchingKey)) throw error
    }
    await waitForKeys()
    if (state !== 'there' || keys === undefined) throw issuerAway(nextFetchSeconds())
    return keys.find(header, token)
  }

  async function waitForKeys(): Promise<void> {
    if (fetching === undefined && performance.now() - fetchedAt < soonMs) return
    if (waiting >= maxWaiting) throw issuerAway(nextFetchSeconds())
    waiting++
    await fetchKeys()
    waiting--
  }

  function nextFetchSeconds(): number {
    if (keys === undefined) return firstKeysMs / 1_000
    return Math.max(1, Math.ceil((fetchedAt + soonMs - performance.now()) / 1_000))
  }

  async function verify(token: string): Promise<Grant> {
    const { jwtVerify, errors } = await library
    const keysBefore = keys
    try {
      const { payload } = await jwtVerify(token, findKey, {
        algorithms,
        issuer,
        audience,
        clockTolerance: leewaySeconds,
      })
      requireUniqueNames(token)
      const grant = toGrant(payload)
      // If the keys changed meanwhile, this token's key may be gone: the grant is not cached.
      return keys === keysBefore ? remember(token, grant) : grant
    } catch (error) {
      if (error instanceof Failure) throw error
      if (error instanceof errors.JWTExpired) throw expired()
      throw invalidJwt(error instanceof errors.JWTClaimValidationFailed ? error.claim : undefined)
    }
  }

  function remember(token: string, grant: Grant): Grant {
    forget(token.slice(-tailLength))
    remembered.set(token.slice(-tailLength), { token, grant })
    rememberedBytes += token.length
    for (const oldest of remembered.keys()) {
      if (remembered.size <= maxGrants && rememberedBytes <= maxGrantBytes) break
      forget(oldest)
    }
    return grant
  }

  function forget(tail: string): void {
    rememberedBytes -= remembered.get(tail)?.token.length ?? 0
    remembered.delete(tail)
  }

  fetchKeys()
  const stopFetching = repeat(
    async () => {
      const pauseMs = state === 'away' ? soonMs : renewMs
      if (keys === undefined || performance.now() - fetchedAt >= pauseMs) await fetchKeys()
    },
    firstKeysMs,
    onAway,
  )

  return {
    find(token) {
      const found = remembered.get(token.slice(-tailLength))
      return found?.token === token ? found.grant : undefined
    },
    verify,
    grants: () => remembered.values().map(({ grant }) => grant),
    close() {
      stopFetching()
      stop.abort()
    },
  }
}

function toDiscoveryUrl(issuer: string): URL {
  return new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
}

function toKeysUrl(discovery: string, issuer: string): URL {
  const { issuer: named, jwks_uri: keysUrl } = JSON.parse(discovery)
  if (named !== issuer) throw new Error('the discovery document names another issuer')
  const url = typeof keysUrl === 'string' ? URL.parse(keysUrl) : null
  if (url === null || !isTrustworthy(url)) {
    throw new Error('the discovery document has no jwks_uri with https')
  }
  return url
}

/** The body of a 200 response. Redirects are not followed. */
async function fetchText(url: URL, maxBytes: number, signal: AbortSignal): Promise<string> {
  // An import of `node:http` would load Node's web client as well.
  const { request } =
    url.protocol === 'https:'
      ? process.getBuiltinModule('node:https')
      : process.getBuiltinModule('node:http')
  // Explicit: NODE_TLS_REJECT_UNAUTHORIZED could disable the check.
  const trust = { rejectUnauthorized: true }
  const headers = { Accept: 'application/json' }
  const sent = request(url, { signal, headers, agent: false, ...trust }).end()
  try {
    const [answer] = await once(sent, 'response')
    // From here on, an error also ends the response, which the loop reports.
    sent.on('error', () => {})
    if (answer.statusCode !== 200) throw new Error(`${url.host} answers ${answer.statusCode}`)
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > maxBytes) throw new Error(`${url.host} answers more than ${maxBytes} bytes`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString()
  } finally {
    sent.destroy()
  }
}

/** `JSON.parse` takes the last of two claims with the same name. We refuse the token. */
function requireUniqueNames(token: string): void {
  try {
    for (const part of token.split('.', 2)) {
      scan(Buffer.from(part, 'base64url').toString(), () => {})
    }
  } catch {
    throw invalidJwt()
  }
}

/** The grant of a token whose signature and claims are valid. */
function toGrant({ iss, sub = '', exp = NaN, scope, scp }: JWTPayload): Grant {
  // `exp` may be missing, or Infinity (1e999 in JSON): such a token would never expire.
  if (!Number.isFinite(exp)) throw invalidJwt('exp')
  if (typeof sub !== 'string') throw invalidJwt('sub')
  return {
    tokenId: toSubjectId(iss ?? '', sub),
    scopes: new Set(toScopes(scope ?? scp)),
    expiresAt: (exp + leewaySeconds) * 1_000,
    lastUsedAt: 0,
    revision: 'issuer',
  }
}

const idPrefix = 'jwt-'

/** Identifies a subject in the journal, the log and every bound, whichever token it uses. */
export function toSubjectId(issuer: string, subject: string): string {
  const hash = createHash('sha256').update(`${issuer} ${subject}`).digest('hex')
  return idPrefix + hash.slice(0, 32)
}

export function isSubjectId(tokenId: string): boolean {
  return tokenId.startsWith(idPrefix)
}

function toScopes(given: unknown): Scope[] {
  const names: unknown = typeof given === 'string' ? given.split(' ') : given
  return Array.isArray(names) ? scopes.filter((scope) => names.includes(scope)) : []
}

function invalidJwt(claim?: string): Failure {
  const fault =
    claim === undefined
      ? 'it is malformed, or not signed by a key of the issuer'
      : `its claim "${claim}" is missing or wrong`
  return new Failure(40101, `The JSON Web Token is not valid: ${fault}.`)
}

function issuerAway(seconds: number): Failure {
  return new Failure(
    50302,
    `The issuer of the JSON Web Token cannot be asked for its keys. Try again in ${seconds} s.`,
    { headers: { 'Retry-After': String(seconds) } },
  )
}
