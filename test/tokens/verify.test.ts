import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Failure } from '../../src/contract/errors.ts'
import type { Store } from '../../src/store/store.ts'
import { issueToken, newToken } from '../../src/tokens/issue.ts'
import { openTokenVerifier } from '../../src/tokens/verify.ts'
import { stopClock } from '../support/clock.ts'
import { releaseAfterTest } from '../support/release.ts'
import { openSqliteStore } from '../support/stores.ts'
import { newTokenRecord } from '../support/token-record.ts'
import { waitUntil } from '../support/wait.ts'

const request = { name: 'test', scopes: ['plants:read'], lifetimeMs: undefined } as const

/** Opens the check on a store whose answers a test can hold back or break. */
async function open(overrides: (store: Store) => Partial<Store>) {
  const real = openSqliteStore(':memory:')
  const errors: unknown[] = []
  const store = { ...real, ...overrides(real) }
  const onError = (error: unknown) => errors.push(error)
  const verifier = await openTokenVerifier({ store, operatorToken: undefined, onError })
  releaseAfterTest(verifier.close)
  return { real, verifier, errors }
}

describe('the check of tokens', () => {
  it('does not trust its memory when the store has stopped answering', async (t) => {
    const clock = stopClock(t)
    let isAway = false
    let lookUps = 0
    const away = async () => {
      throw new Failure(50301, 'Away.')
    }
    const { real, verifier, errors } = await open((store) => ({
      tokenRevision: () => (isAway ? away() : store.tokenRevision()),
      findToken: (hash) => {
        lookUps++
        return isAway ? away() : store.findToken(hash)
      },
    }))
    const { token } = await issueToken(real, request)
    await verifier.verify(token)
    await verifier.verify(token)
    assert.equal(lookUps, 1)
    isAway = true
    await waitUntil(() => errors.length > 0, 'the check knows that the store is away')
    clock.advance(1_000)
    await assert.rejects(async () => verifier.verify(token), { number: 50301 })
    isAway = false
    await verifier.verify(token)
  })

  it('refuses a revoked token within 1 s, even if the store does not tell', async (t) => {
    const clock = stopClock(t)
    let revisions = 0
    const { real, verifier } = await open((store) => ({
      // It answers once: nothing renews the trust.
      tokenRevision: () => (revisions++ === 0 ? store.tokenRevision() : new Promise(() => {})),
    }))
    const { token, record } = await issueToken(real, request)
    const grant = await verifier.verify(token)
    assert.ok(verifier.isCurrent(grant))
    await real.revokeToken(record.id, Date.now())
    clock.advance(1_000)
    assert.ok(!verifier.isCurrent(grant))
    await assert.rejects(async () => verifier.verify(token), { number: 40101 })
  })

  it('holds a grant for current until it expires, or another token is revoked', async (t) => {
    const { real, verifier } = await open(() => ({}))
    const { token } = await issueToken(real, { ...request, lifetimeMs: 60_000 })
    const [lasting, other] = [await issueToken(real, request), await issueToken(real, request)]
    const grant = await verifier.verify(lasting.token)
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
    const expiring = await verifier.verify(token)
    assert.ok(verifier.isCurrent(expiring))
    t.mock.timers.tick(60_000)
    assert.ok(!verifier.isCurrent(expiring))
    await real.revokeToken(other.record.id, Date.now())
    await waitUntil(() => !verifier.isCurrent(grant), 'the revocation is known')
    assert.ok(verifier.isCurrent(await verifier.verify(lasting.token)))
  })

  it('remembers a bounded number of tokens', async (t) => {
    stopClock(t)
    let lookUps = 0
    const record = (hash: Buffer) => newTokenRecord({ id: hash.toString('hex'), hash })
    const { verifier } = await open(() => ({
      async findToken(hash) {
        lookUps++
        return record(hash)
      },
      async noteTokenUses() {},
    }))
    const first = newToken()
    await verifier.verify(first)
    await verifier.verify(first)
    assert.equal(lookUps, 1)
    for (let count = 0; count < 5_000; count++) await verifier.verify(newToken())
    await verifier.verify(first)
    assert.equal(lookUps, 5_002)
  })

  it('does not remember a token that was revoked while it was looked up', async () => {
    let hold: Promise<void> | undefined
    let revisions = 0
    const { real, verifier } = await open((store) => ({
      findToken: async (hash) => {
        const record = await store.findToken(hash)
        await hold
        return record
      },
      tokenRevision: async () => {
        revisions++
        return store.tokenRevision()
      },
    }))
    const { token, record } = await issueToken(real, request)
    const { promise, resolve } = Promise.withResolvers<void>()
    hold = promise
    const late = verifier.verify(token)
    await real.revokeToken(record.id, Date.now())
    const before = revisions
    await waitUntil(() => revisions >= before + 2, 'the revision is known')
    resolve()
    await late
    await assert.rejects(async () => verifier.verify(token), { number: 40101 })
  })

  it('records the uses of tokens that it forgets because another was revoked', async () => {
    const { real, verifier } = await open(() => ({}))
    const used = await issueToken(real, request)
    const revoked = await issueToken(real, request)
    await verifier.verify(used.token)
    await real.revokeToken(revoked.record.id, Date.now())
    const isRecorded = async () =>
      (await real.findToken(used.record.hash))?.lastUsedAt !== undefined
    await waitUntil(isRecorded, 'the use is recorded')
  })

  it('ends quietly when the last uses cannot be written', async () => {
    const { real, verifier, errors } = await open(() => ({
      noteTokenUses: async () => {
        throw new Failure(50700, 'Full.')
      },
    }))
    const { token } = await issueToken(real, request)
    await verifier.verify(token)
    await verifier.close()
    assert.equal((errors[0] as Failure).number, 50700)
  })
})
