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
      await store.followChanges({ source, after: 0, position: undefined, plants: [], removed: [] })
      assert.deepEqual(await store.readFollowed(), { source, position: undefined, revision: 1 })
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
      const changes = { source, after: 0, position: 'p-1', plants, removed: [3n, 4n] }
      assert.equal(await store.followChanges(changes), 'written')
      await store.close()
      const again = await engine.open(url)
      assert.deepEqual(await again.readFollowed(), { source, position: 'p-1', revision: 1 })
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

    it('lets one of several processes write, from each revision', async () => {
      const url = await engine.newUrl()
      const stores = await Promise.all([1, 2, 3].map(() => engine.open(url)))
      for (let after = 0; after < 20; after++) {
        const outcomes = await Promise.all(
          stores.map((store, index) => {
            const plants = [{ id: BigInt(index), name: `${after}` }]
            const position = `p-${after}-${index}`
            return store.followChanges({ source, after, position, plants, removed: [] })
          }),
        )
        const winner = outcomes.indexOf('written')
        assert.equal(outcomes.filter((outcome) => outcome === 'overtaken').length, 2)
        for (const store of stores) {
          const expected = { source, position: `p-${after}-${winner}`, revision: after + 1 }
          assert.deepEqual(await store.readFollowed(), expected)
          const query = { after: undefined, tag: undefined, limit: 9 }
          const { plants } = await store.listPlants(query)
          const written = plants.filter(({ name }) => name === `${after}`)
          assert.deepEqual(
            written.map(({ id }) => id),
            [BigInt(winner)],
          )
        }
      }
    })

    it('writes neither changes nor their position if the store fails', async () => {
      const { store, witness } = await engine.openWithFault('disk full')
      const plants = Array.from({ length: 100 }, (_, id) => ({
        id: BigInt(id),
        name: 'x'.repeat(5_000),
      }))
      await assert.rejects(
        store.followChanges({ source, after: 0, position: 'p', plants, removed: [] }),
      )
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
