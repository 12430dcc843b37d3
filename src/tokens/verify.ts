import { timingSafeEqual } from 'node:crypto'
import { Failure } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import { scopes } from '../contract/scopes.ts'
import { repeat } from '../repeat.ts'
import type { Store } from '../store/store.ts'
import { expired, type Grant } from './grant.ts'
import { hashToken, isWellFormed } from './issue.ts'
import { type Issuer, isJwt, isSubjectId } from './issuer.ts'

export type TokenVerifier = Awaited<ReturnType<typeof openTokenVerifier>>

export interface TokenVerifierOptions {
  readonly store: Store
  /** The token that the operator has chosen, with every scope. */
  readonly operatorToken: string | undefined
  /** Verifies JSON Web Tokens. It is closed with the verifier. */
  readonly issuer?: Issuer | undefined
  /** Called when a query in the background fails. */
  readonly onError: (error: unknown) => void
}

/** How often the store is asked whether a token was revoked. */
const refreshMs = 400
/** How long an answer of the store is trusted: a revoked token stops working within this time. */
const trustMs = 900
/** How often the last use of each token is stored. */
const noteUsesMs = 10_000

/** Opens the verifier. A known token costs no query, and a revoked one stops working within 1 s. */
export async function openTokenVerifier(options: TokenVerifierOptions) {
  const { store, issuer, onError } = options
  const operator = toOperator(options.operatorToken)
  let grants = new Map<string, Grant>()
  /** Changes with each revocation, and with the keys of the issuer. */
  let revision: string | undefined
  let trustedUntil = 0
  let notedUntil = Date.now()

  /**
   * Returns the grant from memory, or promises it from the store or the issuer. Fails with a
   * `Failure`. Calls `onWait` if it has to wait for keys of the issuer.
   */
  function verify(token: string, onWait?: () => void): Grant | Promise<Grant> {
    const grant = performance.now() < trustedUntil ? grants.get(token) : undefined
    return grant === undefined ? lookUp(token, onWait) : use(grant)
  }

  /** Whether a grant is known to be still valid. If not, verify its token again. */
  function isCurrent(grant: Grant): boolean {
    if (grant.revision !== revision || performance.now() >= trustedUntil) return false
    return grant.expiresAt === Infinity || Date.now() < grant.expiresAt
  }

  function use(grant: Grant): Grant {
    const now = Date.now()
    if (now >= grant.expiresAt) throw expired()
    grant.lastUsedAt = now
    return grant
  }

  async function lookUp(token: string, onWait?: () => void): Promise<Grant> {
    const revisionBefore = revision
    const granted = await find(token, onWait)
    const grant = { ...granted, lastUsedAt: 0, revision: revisionBefore }
    // If a revocation was seen meanwhile, it may be of this token: the grant is not cached.
    if (revision === revisionBefore) {
      if (grants.size >= limits.verifiedTokens) forgetGrants()
      grants.set(token, grant)
    }
    return use(grant)
  }

  async function find(token: string, onWait?: () => void) {
    const hash = hashToken(token)
    if (operator && timingSafeEqual(hash, operator.hash)) return operator.granted
    if (issuer && isJwt(token)) return issuer.verify(token, onWait)
    if (!isWellFormed(token)) throw invalid()
    const record = await store.findToken(hash)
    if (record === undefined || record.revokedAt !== undefined) throw invalid()
    const { id, scopes, expiresAt = Infinity } = record
    return { tokenId: id, scopes: new Set(scopes), expiresAt }
  }

  function forgetGrants(): void {
    const forgotten = grants
    grants = new Map()
    noteUses(forgotten).catch(onError)
  }

  async function refresh(): Promise<void> {
    const askedAt = performance.now()
    const current = `${await store.tokenRevision()} ${issuer?.keyChanges()}`
    if (current !== revision) forgetGrants()
    revision = current
    trustedUntil = askedAt + trustMs
  }

  async function noteUses(used = grants): Promise<void> {
    const isStored = (id: string) => id !== operator?.granted.tokenId && !isSubjectId(id)
    const uses = [...used.values()]
      .filter(({ tokenId, lastUsedAt }) => isStored(tokenId) && lastUsedAt >= notedUntil)
      .map(({ tokenId, lastUsedAt }) => ({ id: tokenId, at: lastUsedAt }))
    notedUntil = Date.now()
    if (uses.length > 0) await store.noteTokenUses(uses)
  }

  await refresh().catch(onError)
  const stopRefreshing = repeat(refresh, refreshMs, onError)
  const stopNoting = repeat(() => noteUses(), noteUsesMs, onError)

  return {
    verify,
    /** The id of a token that was verified before; undefined for any other. Costs no query. */
    findId: (token: string) => grants.get(token)?.tokenId,
    isCurrent,
    /** How many of the cached tokens were used since this time. */
    countUsed(since: number): number {
      let used = 0
      for (const { lastUsedAt } of grants.values()) if (lastUsedAt >= since) used++
      return used
    },
    async close(): Promise<void> {
      stopRefreshing()
      stopNoting()
      issuer?.close()
      await noteUses().catch(onError)
    },
  }
}

/** The id is the start of the token's hash: it changes with the token, and does not reveal it. */
function toOperator(token: string | undefined) {
  if (token === undefined) return undefined
  const hash = hashToken(token)
  const tokenId = `operator-${hash.toString('hex', 0, 4)}`
  return { hash, granted: { tokenId, scopes: new Set(scopes), expiresAt: Infinity } }
}

function invalid(): Failure {
  return new Failure(
    40101,
    'The token is unknown, malformed or revoked. Ask the operator for a new one.',
  )
}
