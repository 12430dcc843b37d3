import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Store } from '../../../src/store/store.ts'
import type { Engine } from '../../support/engines.ts'

/** A store changes plants. */
export function testChanges(_engine: Engine, store: Store): void {
  describe('changes', () => {
    it('changes a plant only if its condition holds', async () => {
      const version = (await store.createPlant({ id: 601n, name: 'a' })) as bigint
      const plant = { id: 601n, name: 'b' }
      assert.equal(await store.replacePlant(plant, { match: [version + 1n] }), 'condition failed')
      assert.equal(await store.replacePlant(plant, { match: [] }), 'condition failed')
      assert.equal(await store.replacePlant(plant, { noneMatch: '*' }), 'condition failed')
      const absent = { ...plant, id: 602n }
      assert.equal(await store.replacePlant(absent, { match: '*' }), 'condition failed')
      assert.equal(await store.deletePlant(601n, { match: [version + 1n] }), 'condition failed')
      assert.equal((await store.getPlant(601n))?.version, version)
      assert.equal(await store.getPlant(602n), undefined)
      assert.notEqual(await store.replacePlant(plant, { match: [1n, version] }), 'condition failed')
      assert.equal(await store.deletePlant(601n, { match: [version] }), 'condition failed')
      assert.equal(await store.deletePlant(601n, { match: '*' }), 'deleted')
      assert.equal(await store.deletePlant(601n, { match: '*' }), 'absent')
    })

    it('applies the writes of one batch in order', async () => {
      const outcomes = await Promise.all([
        store.createPlant({ id: 603n, name: 'a' }),
        store.deletePlant(603n, {}),
        store.createPlant({ id: 603n, name: 'b' }),
        store.replacePlant({ id: 603n, name: 'c' }, { match: '*' }),
        store.createPlant({ id: 603n, name: 'd' }),
        store.deletePlant(604n, {}),
      ])
      const kinds = outcomes.map((outcome) => {
        if (typeof outcome === 'bigint') return 'created'
        return typeof outcome === 'object' ? outcome.kind : outcome
      })
      const expected = ['created', 'deleted', 'created', 'replaced', 'exists', 'absent']
      assert.deepEqual(kinds, expected)
      assert.equal((await store.getPlant(603n))?.name, 'c')
    })
  })
}
