import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limits } from '../../src/contract/limits.ts'
import type { Store } from '../../src/store/store.ts'
import { postgres } from '../support/engines.ts'
import { holdOpen, untilWaiting } from '../support/locks.ts'
import { openPostgresStore as open, openNewPostgresStore as openNew } from '../support/stores.ts'

describe('two processes that write to one PostgreSQL at once', () => {
  it('commit two batches with the same ids and keys in different orders, each once', async () => {
    const url = await postgres.newUrl()
    const [one, two] = [await open(url), await open(url)]
    const create = (store: Store, id: bigint) => store.createPlant({ id, name: '' })
    const createOnce = (store: Store, id: bigint) =>
      store.createPlantOnce({ id, name: '' }, { tokenId: 'tok', key: `${id}` })
    for (let round = 0; round < 20; round++) {
      const ids = Array.from({ length: 50 }, (_, index) => BigInt(round * 100 + index))
      const created = await Promise.all([
        ...ids.map((id) => create(one, id)),
        ...ids.toReversed().map((id) => create(two, id)),
      ])
      assert.equal(created.filter((outcome) => outcome === 'exists').length, 50)
      const outcomes = await Promise.all([
        ...ids.map((id) => createOnce(one, id + 50n)),
        ...ids.toReversed().map((id) => createOnce(two, id + 50n)),
      ])
      const replays = outcomes.map((made) => (typeof made === 'string' ? made : made.isReplay))
      assert.deepEqual(replays.toSorted(), [...Array(50).fill(false), ...Array(50).fill(true)])
    }
  })

  it('replace a plant once, though two have read the same ETag of it', async () => {
    const url = await postgres.newUrl()
    const [one, two] = [await open(url), await open(url)]
    const version = await one.createPlant({ id: 1n, name: '' })
    assert.ok(typeof version === 'bigint')
    const row = await holdOpen(url, 'SELECT FROM plant_store.plants FOR UPDATE')
    const replaced = [one, two].map((store) =>
      store.replacePlant({ id: 1n, name: 'x' }, { match: [version] }),
    )
    await untilWaiting(url, 2)
    await row.release()
    const outcomes = await Promise.all(replaced)
    assert.equal(outcomes.filter((outcome) => outcome === 'condition failed').length, 1)
  })

  it('store one plant for a key that two use at once, beside other writes', async () => {
    const url = await postgres.newUrl()
    const [one, two] = [await open(url), await open(url)]
    const release = await postgres.block(url)
    const used = [one, two].map(async (store, index) => {
      const id = BigInt(index)
      const [created] = await Promise.all([
        store.createPlantOnce({ id, name: '' }, { tokenId: 'tok', key: 'key' }),
        store.replacePlant({ id: id + 2n, name: '' }, {}),
      ])
      return created
    })
    await untilWaiting(url, 2)
    await release()
    const outcomes = await Promise.all(used)
    assert.equal(outcomes.filter((outcome) => outcome === 'key reused').length, 1)
  })

  it('store one plant for an expired key that one of them has just used again', async (t) => {
    const { url, store } = await openNew()
    const createOnce = (id: bigint) =>
      store.createPlantOnce({ id, name: '' }, { tokenId: 'tok', key: 'key' })
    await createOnce(1n)
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + limits.keyLifetimeMs })
    // The lock lets the store read the key, and not replace it.
    const other = await holdOpen(url, 'LOCK TABLE plant_store.keys IN SHARE MODE')
    const used = createOnce(2n)
    const beside = store.replacePlant({ id: 3n, name: '' }, {})
    await untilWaiting(url)
    await other.query(`UPDATE plant_store.keys SET used_at = ${Date.now()}; COMMIT`)
    assert.equal(await used, 'key reused')
    assert.notEqual(await beside, 'condition failed')
    assert.equal(await store.getPlant(2n), undefined)
  })
})
