import { createHash } from 'node:crypto'
import type { JWTPayload } from 'jose'
import { Failure } from '../contract/errors.ts'
import { type Scope, scopes } from '../contract/scopes.ts'
import { isLoopback } from '../contract/setting-values.ts'
import { repeat } from '../repeat.ts'
import { expired, type Grant } from './grant.ts'

export type Issuer = Awaited<ReturnType<typeof openIssuer>>

type Verified = Pick<Grant, 'tokenId' | 'scopes' | 'expiresAt'>

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
/** The pause after a fetch for an unknown key, and after one that failed. */
const cooldownMs = 30_000
const renewMs = 10 * 60_000
/** How often it is checked whether the keys are due. */
const tickMs = 5_000
/** Far more than a key set has. */
const maxLength = 256 * 1024

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
  return /^[^.]*\.[^.]*\.[^.]*$/.test(token)
}

/**
 * Verifies the JSON Web Tokens of one issuer, which may be unreachable at first. `jose` checks them
 * and holds the keys: it fetches them for a token with an unknown key, at most once in 30 s. This
 * file discovers their address, pauses after a failure, and renews them every 10 minutes, because a
 * key may have been withdrawn. Known keys stay valid while the issuer is unreachable.
 */
export async function openIssuer(options: IssuerOptions) {
  const { url: issuer, audience, timeoutMs, onAway, onBack } = options
  // Loaded only where an issuer is set.
  const jose = await import('jose')
  const { errors } = jose
  const stop = new AbortController()
  let keyText: string | undefined
  let keyChanges = 0
  let isAway = false
  let dueAt = 0

  const keys = jose.createRemoteJWKSet(toDiscoveryUrl(issuer), {
    timeoutDuration: timeoutMs,
    cooldownDuration: cooldownMs,
    // Beyond an age, jose would refuse known keys while the issuer is away.
    cacheMaxAge: Infinity,
    [jose.customFetch]: fetchKeys,
  })

  async function fetchKeys(discoveryUrl: string, options: { signal: AbortSignal }) {
    if (isAway && performance.now() < dueAt) throw issuerAway(dueAt)
    const signal = AbortSignal.any([options.signal, stop.signal])
    try {
      const keysUrl = toKeysUrl(await fetchText(discoveryUrl, signal), issuer)
      const text = await fetchText(keysUrl, signal)
      // Malformed keys are a failure, too: jose would ask for them again at once.
      jose.createLocalJWKSet(JSON.parse(text))
      if (text !== keyText) keyChanges++
      keyText = text
      if (isAway) onBack()
      isAway = false
      dueAt = performance.now() + renewMs
      return new Response(text)
    } catch (error) {
      if (!isAway && !stop.signal.aborted) onAway(error)
      isAway = true
      dueAt = performance.now() + cooldownMs
      throw issuerAway(dueAt)
    }
  }

  async function renewKeys(): Promise<void> {
    // `fetchKeys` reports a failure.
    if (performance.now() >= dueAt) await keys.reload().catch(() => {})
  }

  /** Verifies a token. Fails with a `Failure`. Calls `onWait` if keys are being fetched. */
  async function verify(token: string, onWait?: () => void): Promise<Verified> {
    requireOneSpelling(token)
    if (keys.reloading) onWait?.()
    try {
      return toVerified(await readClaims(token))
    } catch (error) {
      // Anything that is not about the token is a fault: of a key that cannot be used, for example.
      if (!(error instanceof errors.JOSEError)) throw error
      if (error instanceof errors.JWTExpired) throw expired()
      throw invalidJwt(error instanceof errors.JWTClaimValidationFailed ? error.claim : undefined)
    }
  }

  /** The claims of a token whose signature is valid. A new key without a name is fetched, too. */
  async function readClaims(token: string): Promise<JWTPayload> {
    try {
      return await tryKeys(token)
    } catch (error) {
      const isWrong = error instanceof errors.JWSSignatureVerificationFailed
      const isNamed = isWrong && jose.decodeProtectedHeader(token).kid !== undefined
      if (!isWrong || isNamed || keys.coolingDown) throw error
      await keys.reload()
      return tryKeys(token)
    }
  }

  /** Tries the key that a token names; without a name, every key of its type. */
  async function tryKeys(token: string): Promise<JWTPayload> {
    const rules = { algorithms, issuer, audience, clockTolerance: leewaySeconds }
    try {
      return (await jose.jwtVerify(token, keys, rules)).payload
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
      for await (const key of error) {
        try {
          return (await jose.jwtVerify(token, key, rules)).payload
        } catch (failure) {
          if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure
        }
      }
      throw new errors.JWSSignatureVerificationFailed()
    }
  }

  renewKeys()
  const stopRenewing = repeat(renewKeys, tickMs, onAway)
  return {
    verify,
    /** How often they have changed: a token that was verified before must be verified again. */
    keyChanges: () => keyChanges,
    close(): void {
      stopRenewing()
      stop.abort()
    },
  }
}

function toDiscoveryUrl(issuer: string): URL {
  return new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
}

function toKeysUrl(discovery: string, issuer: string): string {
  const { issuer: named, jwks_uri: keysUrl } = JSON.parse(discovery)
  if (named !== issuer) throw new Error('the discovery document names another issuer')
  const url = typeof keysUrl === 'string' ? URL.parse(keysUrl) : null
  if (url === null || !isTrustworthy(url)) {
    throw new Error('the discovery document has no jwks_uri with https')
  }
  return url.href
}

/** The body of a 200 response. Redirects are not followed. */
async function fetchText(url: string, signal: AbortSignal): Promise<string> {
  const headers = { Accept: 'application/json' }
  const { status, body } = await fetch(url, { headers, redirect: 'manual', signal })
  const { host } = new URL(url)
  if (status !== 200) {
    await body?.cancel()
    throw new Error(`${host} answers ${status}`)
  }
  let text = ''
  for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part
    if (text.length > maxLength)
      throw new Error(`${host} answers more than ${maxLength} characters`)
  }
  return text
}

/** `jose` also takes white space, padding and stray bits, so a token would have many spellings. */
function requireOneSpelling(token: string): void {
  const parts = token.split('.')
  const isCanonical = (part: string) =>
    Buffer.from(part, 'base64url').toString('base64url') === part
  if (!parts.every(isCanonical)) throw invalidJwt()
}

/** What a token with a valid signature and valid claims grants. */
function toVerified({ iss, sub = '', exp = NaN, scope, scp }: JWTPayload): Verified {
  // `exp` may be missing, or Infinity (1e999 in JSON): such a token would never expire.
  if (!Number.isFinite(exp)) throw invalidJwt('exp')
  if (typeof sub !== 'string') throw invalidJwt('sub')
  return {
    tokenId: toSubjectId(iss ?? '', sub),
    scopes: new Set(toScopes(scope ?? scp)),
    expiresAt: (exp + leewaySeconds) * 1_000,
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

function issuerAway(dueAt: number): Failure {
  const seconds = Math.max(1, Math.ceil((dueAt - performance.now()) / 1_000))
  return new Failure(
    50302,
    `The issuer of the JSON Web Token cannot be asked for its keys. Try again in ${seconds} s.`,
    { headers: { 'Retry-After': String(seconds) } },
  )
}
