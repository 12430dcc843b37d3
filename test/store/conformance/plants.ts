import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isStorable } from '../../../src/contract/values.ts'
import type { Store } from '../../../src/store/store.ts'
import { anyCharacter } from '../../support/characters.ts'
import type { Engine } from '../../support/engines.ts'

const smallest = -(2n ** 63n)
const largest = 2n ** 63n - 1n

/** A store keeps and finds plants. */
export function testPlants(engine: Engine, store: Store): void {
  describe('plants', () => {
    it('keeps ids at both ends of int64 and beyond 2^53', async () => {
      const ids = [
        smallest,
        smallest + 1n,
        -(2n ** 53n) - 1n,
        2n ** 53n + 1n,
        largest - 1n,
        largest,
      ]
      for (const id of ids) {
        await store.createPlant({ id, name: String(id) })
        assert.equal((await store.getPlant(id))?.name, String(id))
        assert.equal((await store.getPlant(id))?.id, id)
      }
      // SQLite remembers its last rowid: a write after it must not stumble over its size.
      assert.equal(await store.createPlant({ id: largest, name: '' }), 'exists')
      assert.equal(typeof (await store.createPlant({ id: 6n, name: '' })), 'bigint')
    })

    it('keeps every storable text, character by character', async () => {
      let id = 1_000n
      const some = fc.string({ unit: anyCharacter, maxLength: 200 }).filter(isStorable)
      const special = fc.constantFrom('', 'NULL', "\\ ' \\' \\x00 {,}", 'C:\\new', '仙人掌 🌵 é')
      const text = fc.oneof({ arbitrary: special, weight: 1 }, { arbitrary: some, weight: 9 })
      const texts = fc.array(fc.tuple(text, fc.option(text, { nil: undefined })), {
        minLength: 20,
        maxLength: 20,
      })
      async function assertKept([name, tag]: [string, string | undefined]): Promise<void> {
        const plant = tag === undefined ? { id: id++, name } : { id: id++, name, tag }
        const version = await store.createPlant(plant)
        assert.deepEqual(await store.getPlant(plant.id), { ...plant, version })
      }
      // Many at once share a commit.
      await fc.assert(
        fc.asyncProperty(texts, async (all) => void (await Promise.all(all.map(assertKept)))),
        { numRuns: 10 },
      )
    })

    it('gives each of many writes and reads at once its own outcome', async () => {
      const ids = Array.from({ length: 1_500 }, (_, index) => BigInt(10_000 + (index % 1_000)))
      const outcomes = await Promise.all(
        ids.map((id) => store.createPlant({ id, name: `plant ${id}` })),
      )
      assert.equal(outcomes.filter((outcome) => outcome === 'exists').length, 500)
      assert.equal(new Set(outcomes).size, 1_001)
      const found = await Promise.all([...ids, 404n].map((id) => store.getPlant(id)))
      const names = found.map((plant) => plant?.name)
      assert.deepEqual(names, [...ids.map((id) => `plant ${id}`), undefined])
    })

    it('finishes accepted writes before it closes', async () => {
      const url = await engine.newUrl()
      const closing = await engine.open(url)
      const writes = [1n, 2n, 3n].map((id) => closing.createPlant({ id, name: '' }))
      await closing.close()
      for (const outcome of await Promise.all(writes)) assert.equal(typeof outcome, 'bigint')
      const after = await engine.open(url)
      assert.notEqual(await after.getPlant(3n), undefined)
    })

    it('measures its queue, batches and size', async () => {
      await store.createPlant({ id: 559n, name: 'Measured' })
      const { isUp, queuedWrites, batchItems, commitSeconds, sizes } = await store.measure()
      assert.equal(isUp, true)
      assert.equal(queuedWrites, 0)
      assert.ok(batchItems.sum >= 1)
      assert.ok(commitSeconds.counts.some((count) => count > 0))
      const [data] = sizes
      assert.equal(data?.[0], 'data')
      assert.ok(Number(data?.[1]) > 4_000)
    })
  })
}
