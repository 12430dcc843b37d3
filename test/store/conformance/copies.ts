import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { followTokenId, toPlant } from '../../../src/store/store.ts'
import type { Engine } from '../../support/engines.ts'

const source = 'https://plants.example'

/** A store can be the copy of another one. */
export function testCopies(engine: Engine): void {
  describe('copies', () => {
    it('is a copy of nothing until changes of a source are written', async () => {
      const store = await engine.open(await engine.newUrl())
      await store.createPlant({ id: 1n, name: 'mine' })
      assert.equal(await store.readFollowed(), undefined)
      await store.followChanges({ source, position: undefined, plants: [], removed: [] })
      assert.deepEqual(await store.readFollowed(), { source, position: undefined })
    })

    it('writes changes with their position, and journals those that change a plant', async () => {
      const url = await engine.newUrl()
      const store = await engine.open(url)
      const large = 'x'.repeat(5_000)
      await store.createPlant({ id: 1n, name: 'same' })
      await store.createPlant({ id: 2n, name: large, tag: 'old' })
      await store.createPlant({ id: 3n, name: large })
      const end = await store.journalEnd()
      const plants = [
        { id: 1n, name: 'same' },
        { id: 2n, name: large },
        { id: 2n ** 63n - 1n, name: 'new', tag: '' },
      ]
      await store.followChanges({ source, position: 'p-1', plants, removed: [3n, 4n] })
      await store.close()
      const again = await engine.open(url)
      assert.deepEqual(await again.readFollowed(), { source, position: 'p-1' })
      const page = await again.listPlants({ after: undefined, tag: undefined, limit: 9 })
      const stored = page.plants.map(({ id, name, tag }) =>
        tag === undefined ? { id, name } : { id, name, tag },
      )
      assert.deepEqual(stored, plants)
      const journal = await again.readJournal(end, 9)
      assert.ok(typeof journal !== 'string')
      assert.deepEqual(
        journal.events.map((event) => [event.type, toPlant(event), event.tokenId]),
        [
          ['plant.replaced', plants[1], followTokenId],
          ['plant.created', plants[2], followTokenId],
          ['plant.deleted', { id: 3n, name: large }, followTokenId],
        ],
      )
    })

    it('writes neither changes nor their position if the store fails', async () => {
      const { store, witness } = await engine.openWithFault('disk full')
      const plants = Array.from({ length: 100 }, (_, id) => ({
        id: BigInt(id),
        name: 'x'.repeat(5_000),
      }))
      await assert.rejects(store.followChanges({ source, position: 'p', plants, removed: [] }))
      assert.equal(await witness.readFollowed(), undefined)
      const { plants: kept } = await witness.listPlants({
        after: undefined,
        tag: undefined,
        limit: 9,
      })
      assert.deepEqual(kept.length, 1)
    })
  })
}
