import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import type { Store } from '../../../src/store/store.ts'
import type { Engine } from '../../support/engines.ts'
import { newTokenRecord } from '../../support/token-record.ts'

/** A store keeps tokens. */
export function testTokens(engine: Engine, store: Store): void {
  describe('tokens', () => {
    it('finds a token by its hash, as it was added', async () => {
      const record = newTokenRecord({ expiresAt: 4_102_444_800_000 })
      await store.addToken(record)
      assert.deepEqual(await store.findToken(record.hash), record)
      assert.equal(await store.findToken(randomBytes(32)), undefined)
    })

    it('revokes a token once, and changes the revision with it', async () => {
      const record = newTokenRecord()
      await store.addToken(record)
      const before = await store.tokenRevision()
      assert.equal(await store.revokeToken(record.id, 17), 'revoked')
      assert.equal(await store.revokeToken(record.id, 18), 'revoked before')
      assert.equal(await store.revokeToken('tok_none', 19), 'unknown')
      assert.equal((await store.findToken(record.hash))?.revokedAt, 17)
      assert.notEqual(await store.tokenRevision(), before)
    })

    it('deletes tokens for good, and changes the revision with them', async () => {
      const [one, two, three] = [newTokenRecord(), newTokenRecord(), newTokenRecord()]
      for (const record of [one, two, three]) await store.addToken(record)
      const before = await store.tokenRevision()
      assert.equal(await store.deleteTokens(['tok_none']), 0)
      assert.equal(await store.tokenRevision(), before)
      assert.equal(await store.deleteTokens([one.id, 'tok_none', two.id]), 2)
      assert.notEqual(await store.tokenRevision(), before)
      assert.equal(await store.findToken(one.hash), undefined)
      assert.notEqual(await store.findToken(three.hash), undefined)
    })

    it('records the last use of a token, and never an earlier one', async () => {
      const record = newTokenRecord()
      await store.addToken(record)
      await store.noteTokenUses([{ id: record.id, at: 20 }])
      await store.noteTokenUses([{ id: record.id, at: 10 }])
      assert.equal((await store.findToken(record.hash))?.lastUsedAt, 20)
    })

    it('lists tokens in the order of their creation', async () => {
      const other = await engine.open(await engine.newUrl())
      await other.addToken(newTokenRecord({ name: 'b', createdAt: 2 }))
      await other.addToken(newTokenRecord({ name: 'a', createdAt: 1 }))
      const names = (await other.listTokens()).map(({ name }) => name)
      assert.deepEqual(names, ['a', 'b'])
    })

    it('adds a first token only while it is empty, and only one', async () => {
      const other = await engine.open(await engine.newUrl())
      const first = newTokenRecord()
      const both = [first, newTokenRecord()].map((token) => other.addFirstToken(token))
      assert.deepEqual(await Promise.all(both), ['added', 'not first'])
      assert.deepEqual(await other.listTokens(), [first])
      const planted = await engine.open(await engine.newUrl())
      await planted.createPlant({ id: 1n, name: '' })
      assert.equal(await planted.addFirstToken(newTokenRecord()), 'not first')
    })
  })
}
