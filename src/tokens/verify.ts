import { timingSafeEqual } from 'node:crypto'
import { Failure } from '../contract/errors.ts'
import { type Scope, scopes } from '../contract/scopes.ts'
import { repeat } from '../repeat.ts'
import type { Store } from '../store/store.ts'
import { hashToken, isWellFormed } from './format.ts'
import { expired, type Grant } from './grant.ts'
import { type Issuer, isJwt } from './issuer.ts'

export interface TokenVerifier {
  /**
   * Returns the grant from memory, or promises it from the store or the issuer. Fails with a
   * `Failure`. Calls `onWait` if it has to wait for keys of the issuer.
   */
  verify(token: string, onWait?: () => void): Grant | Promise<Grant>
  /** The id of a token that was verified before; undefined for any other. Costs no query. */
  findId(token: string): string | undefined
  /** Whether a grant is known to be still valid. If not, verify its token again. */
  isCurrent(grant: Grant): boolean
  /** How many of the cached tokens were used since this time. */
  countUsed(since: number): number
  close(): Promise<void>
}

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
const maxGrants = 10_000

/** Opens the verifier. A known token costs no query, and a revoked one stops working within 1 s. */
export async function openTokenVerifier(options: TokenVerifierOptions): Promise<TokenVerifier> {
  const { store, issuer, onError } = options
  const operator = toOperator(options.operatorToken)
  let grants = new Map<string, Grant>()
  let revision: bigint | undefined
  let trustedUntil = 0
  let notedUntil = Date.now()

  function verify(token: string, onWait?: () => void): Grant | Promise<Grant> {
    const grant =
      issuer?.find(token) ?? (performance.now() < trustedUntil ? grants.get(token) : undefined)
    return grant === undefined ? lookUp(token, onWait) : use(grant)
  }

  function findId(token: string): string | undefined {
    const grant = grants.get(token) ?? (issuer && isJwt(token) ? issuer.find(token) : undefined)
    return grant?.tokenId
  }

  function isCurrent(grant: Grant): boolean {
    const isTrusted =
      grant.revision === 'issuer' ||
      (grant.revision === revision && performance.now() < trustedUntil)
    if (!isTrusted) return false
    return grant.expiresAt === Infinity || Date.now() < grant.expiresAt
  }

  function use(grant: Grant): Grant {
    const now = Date.now()
    if (now >= grant.expiresAt) throw expired()
    grant.lastUsedAt = now
    return grant
  }

  async function lookUp(token: string, onWait?: () => void): Promise<Grant> {
    const hash = hashToken(token)
    if (operator && timingSafeEqual(hash, operator.hash)) {
      return remember(token, toGrant(operator.id, scopes, revision))
    }
    if (issuer && isJwt(token)) return use(await issuer.verify(token, onWait))
    if (!isWellFormed(token)) throw invalid()
    const revisionBefore = revision
    const record = await store.findToken(hash)
    if (record === undefined || record.revokedAt !== undefined) throw invalid()
    const grant = toGrant(record.id, record.scopes, revisionBefore, record.expiresAt)
    // If a revocation was seen meanwhile, it may be of this token: the grant is not cached.
    return revision === revisionBefore ? remember(token, grant) : use(grant)
  }

  function remember(token: string, grant: Grant): Grant {
    if (grants.size >= maxGrants) forgetAll()
    grants.set(token, grant)
    return use(grant)
  }

  function forgetAll(): void {
    const forgotten = grants
    grants = new Map()
    noteUses(forgotten).catch(onError)
  }

  async function refresh(): Promise<void> {
    const askedAt = performance.now()
    const current = await store.tokenRevision()
    if (current !== revision) forgetAll()
    revision = current
    trustedUntil = askedAt + trustMs
  }

  async function noteUses(used = grants): Promise<void> {
    const uses = [...used.values()]
      .filter(({ tokenId, lastUsedAt }) => tokenId !== operator?.id && lastUsedAt >= notedUntil)
      .map(({ tokenId, lastUsedAt }) => ({ id: tokenId, at: lastUsedAt }))
    notedUntil = Date.now()
    if (uses.length > 0) await store.noteTokenUses(uses)
  }

  await refresh().catch(onError)
  const stopRefreshing = repeat(refresh, refreshMs, onError)
  const stopNoting = repeat(() => noteUses(), noteUsesMs, onError)

  return {
    verify,
    findId,
    isCurrent,
    countUsed(since) {
      let used = 0
      for (const known of [grants.values(), issuer?.grants() ?? []]) {
        for (const { lastUsedAt } of known) if (lastUsedAt >= since) used++
      }
      return used
    },
    async close() {
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
  return { hash, id: `operator-${hash.toString('hex', 0, 4)}` }
}

function toGrant(
  tokenId: string,
  scopes: readonly Scope[],
  revision: bigint | undefined,
  expiresAt = Infinity,
): Grant {
  return { tokenId, scopes: new Set(scopes), expiresAt, lastUsedAt: 0, revision }
}

function invalid(): Failure {
  return new Failure(
    40101,
    'The token is unknown, malformed or revoked. Ask the operator for a new one.',
  )
}
