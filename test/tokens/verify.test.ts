import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Failure } from '../../src/contract/errors.ts'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { openTokenVerifier } from '../../src/tokens/verify.ts'

const request = { name: 'test', scopes: ['plants:read'], lifetimeMs: undefined } as const

/** A store whose answers a test can hold back or break. */
async function open(overrides: (store: Store) => Partial<Store>) {
  const real = buildSqliteStore(openConnection(':memory:'))
  const errors: unknown[] = []
  const store = { ...real, ...overrides(real) }
  const onError = (error: unknown) => errors.push(error)
  const verifier = await openTokenVerifier({ store, operatorToken: undefined, onError })
  return { real, verifier, errors }
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5))
}

describe('the check of tokens', () => {
  it('does not trust what it remembers when the store has stopped answering', async () => {
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
    await until(async () => {
      try {
        await verifier.verify(token)
        return false
      } catch (error) {
        return error instanceof Failure && error.number === 50301
      }
    })
    assert.ok(errors.length > 0)
    isAway = false
    await until(async () => (await Promise.resolve(verifier.verify(token)).catch(() => 0)) !== 0)
    await verifier.close()
    await real.close()
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
    await until(() => revisions >= before + 2)
    resolve()
    await late
    await assert.rejects(async () => verifier.verify(token), { number: 40101 })
    await verifier.close()
    await real.close()
  })

  it('notes the uses of tokens that it forgets because another was revoked', async () => {
    const { real, verifier } = await open(() => ({}))
    const used = await issueToken(real, request)
    const revoked = await issueToken(real, request)
    await verifier.verify(used.token)
    await real.revokeToken(revoked.record.id, Date.now())
    await until(async () => (await real.findToken(used.record.hash))?.lastUsedAt !== undefined)
    await verifier.close()
    await real.close()
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
    await real.close()
  })
})
