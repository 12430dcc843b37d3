import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limits } from '../../../src/contract/limits.ts'
import type { Store } from '../../../src/store/store.ts'
import type { Engine } from '../../support/engines.ts'

/** A store creates once for a key. */
export function testKeys(engine: Engine, store: Store): void {
  describe('idempotency keys', () => {
    it('creates once for a key, and repeats the first outcome from then on', async () => {
      const key = { tokenId: 'tok_a', key: 'k' }
      const plant = { id: 610n, name: 'a', tag: '' }
      const first = await store.createPlantOnce(plant, key)
      assert.ok(typeof first === 'object' && !first.isReplay)
      await store.deletePlant(610n, {})
      assert.deepEqual(await store.createPlantOnce(plant, key), {
        version: first.version,
        isReplay: true,
      })
      assert.equal(await store.getPlant(610n), undefined)
      assert.equal(await store.createPlantOnce({ id: 610n, name: 'a' }, key), 'key reused')
      assert.equal(await store.createPlantOnce({ ...plant, id: 611n }, key), 'key reused')
      const other = await store.createPlantOnce(plant, { ...key, tokenId: 'tok_b' })
      assert.ok(typeof other === 'object' && !other.isReplay)
    })

    it('creates again for a key when its lifetime is over, and not before', async (t) => {
      const now = Date.now()
      t.mock.timers.enable({ apis: ['Date'], now })
      const key = { tokenId: 'tok_a', key: 'expiring' }
      await store.createPlantOnce({ id: 620n, name: 'a' }, key)
      t.mock.timers.setTime(now + limits.keyLifetimeMs - 1)
      assert.equal(await store.createPlantOnce({ id: 621n, name: 'b' }, key), 'key reused')
      t.mock.timers.setTime(now + limits.keyLifetimeMs)
      const again = await store.createPlantOnce({ id: 621n, name: 'b' }, key)
      assert.ok(typeof again === 'object' && !again.isReplay)
      const replay = await store.createPlantOnce({ id: 621n, name: 'b' }, key)
      assert.deepEqual(replay, { version: again.version, isReplay: true })
    })

    it('leaves a key free when its create is refused', async () => {
      const key = { tokenId: 'tok_a', key: 'free' }
      await store.createPlant({ id: 612n, name: 'taken' })
      assert.equal(await store.createPlantOnce({ id: 612n, name: 'a' }, key), 'exists')
      const next = await store.createPlantOnce({ id: 613n, name: 'a' }, key)
      assert.ok(typeof next === 'object' && !next.isReplay)
    })

    it('runs one of many creates with one key and gives the others its outcome', async () => {
      const url = await engine.newUrl()
      const open = () => engine.open(url, { batchItems: 3 })
      const stores = [await open(), await open()]
      const creates = Array.from({ length: 30 }, (_, index) =>
        stores[index % 2]?.createPlantOnce({ id: 1n, name: 'a' }, { tokenId: 'tok', key: 'k' }),
      )
      const outcomes = await Promise.all(creates)
      const told = outcomes.map((outcome) => (typeof outcome === 'object' ? outcome : undefined))
      assert.equal(told.filter((outcome) => outcome?.isReplay === false).length, 1)
      assert.equal(new Set(told.map((outcome) => outcome?.version)).size, 1)
    })

    it('forgets old keys, a few at a time, and keeps the others', async () => {
      const other = await engine.open(await engine.newUrl())
      const create = (id: number) =>
        other.createPlantOnce({ id: BigInt(id), name: '' }, { tokenId: 'tok', key: `${id}` })
      await Promise.all(Array.from({ length: 600 }, (_, id) => create(id)))
      assert.equal(await other.forgetKeys(0), true)
      const replay = await create(1)
      assert.ok(typeof replay === 'object' && replay.isReplay)
      const later = Date.now() + 1
      assert.equal(await other.forgetKeys(later), false)
      assert.equal(await other.forgetKeys(later), true)
      assert.equal(await create(1), 'exists')
    })
  })
}
