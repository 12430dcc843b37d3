import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isStorable } from '../../../src/contract/values.ts'
import { anyCharacter } from '../../support/characters.ts'
import type { Engine } from '../../support/engines.ts'
import { newTokenRecord } from '../../support/token-record.ts'
import type { Shared } from './shared.ts'

const smallest = -(2n ** 63n)
const largest = 2n ** 63n - 1n

/** A store keeps and finds plants. */
export function testPlants(engine: Engine, shared: Shared): void {
  describe('plants', () => {
    it('returns a plant as it was created, with the version that the create returned', async () => {
      const version = await shared.store.createPlant({ id: 1n, name: 'Monstera', tag: 'indoor' })
      assert.deepEqual(await shared.store.getPlant(1n), {
        id: 1n,
        name: 'Monstera',
        tag: 'indoor',
        version,
      })
    })

    it('keeps an absent tag absent and an empty one empty', async () => {
      await shared.store.createPlant({ id: 2n, name: '' })
      await shared.store.createPlant({ id: 3n, name: '', tag: '' })
      assert.equal(Object.hasOwn((await shared.store.getPlant(2n)) ?? {}, 'tag'), false)
      assert.equal((await shared.store.getPlant(3n))?.tag, '')
    })

    it('finds each of many plants that are requested at once', async () => {
      const other = await engine.open(await engine.newUrl())
      const plants = Array.from({ length: 300 }, (_, index) => ({
        id: BigInt(index) * 2n,
        name: `${index}`,
      }))
      await Promise.all(plants.map((plant) => other.createPlant(plant)))
      const asked = Array.from({ length: 700 }, (_, index) => BigInt((index * 7) % 650))
      const found = await Promise.all(asked.map((id) => other.getPlant(id)))
      assert.deepEqual(
        found.map((plant) => plant?.name),
        asked.map((id) => plants.find((plant) => plant.id === id)?.name),
      )
    })

    it('finds no plant that was not created', async () => {
      assert.equal(await shared.store.getPlant(404n), undefined)
    })

    it('refuses a second plant with the same id and keeps the first', async () => {
      const version = await shared.store.createPlant({ id: 4n, name: 'first' })
      assert.equal(await shared.store.createPlant({ id: 4n, name: 'second', tag: 'x' }), 'exists')
      assert.deepEqual(await shared.store.getPlant(4n), { id: 4n, name: 'first', version })
    })

    it('lets the first of two creates in one batch win', async () => {
      const [first, second] = await Promise.all([
        shared.store.createPlant({ id: 5n, name: 'first' }),
        shared.store.createPlant({ id: 5n, name: 'second' }),
      ])
      assert.equal(typeof first, 'bigint')
      assert.equal(second, 'exists')
      assert.equal((await shared.store.getPlant(5n))?.name, 'first')
    })

    it('keeps ids at both ends of int64 and beyond 2^53', async () => {
      for (const id of [
        smallest,
        smallest + 1n,
        -(2n ** 53n) - 1n,
        2n ** 53n + 1n,
        largest - 1n,
        largest,
      ]) {
        await shared.store.createPlant({ id, name: String(id) })
        assert.equal((await shared.store.getPlant(id))?.name, String(id))
        assert.equal((await shared.store.getPlant(id))?.id, id)
      }
      // SQLite remembers its last rowid: a write after it must not stumble over its size.
      assert.equal(await shared.store.createPlant({ id: largest, name: '' }), 'exists')
      assert.equal(typeof (await shared.store.createPlant({ id: 6n, name: '' })), 'bigint')
    })

    it('keeps every storable text, character by character', async () => {
      let id = 1_000n
      const text = fc.string({ unit: anyCharacter, maxLength: 200 }).filter(isStorable)
      const texts = fc.array(fc.tuple(text, fc.option(text, { nil: undefined })), {
        minLength: 20,
        maxLength: 20,
      })
      async function assertKept([name, tag]: [string, string | undefined]): Promise<void> {
        const plant = tag === undefined ? { id: id++, name } : { id: id++, name, tag }
        const version = await shared.store.createPlant(plant)
        assert.deepEqual(await shared.store.getPlant(plant.id), { ...plant, version })
      }
      // Many at once share a commit.
      await fc.assert(
        fc.asyncProperty(texts, async (all) => void (await Promise.all(all.map(assertKept)))),
        { numRuns: 10 },
      )
    })

    it('gives each of many writes at once its own outcome', async () => {
      const ids = Array.from({ length: 1_500 }, (_, index) => BigInt(10_000 + (index % 1_000)))
      const outcomes = await Promise.all(
        ids.map((id) => shared.store.createPlant({ id, name: `plant ${id}` })),
      )
      assert.equal(outcomes.filter((outcome) => outcome === 'exists').length, 500)
      assert.equal(new Set(outcomes).size, 1_001)
      for (const id of ids) assert.equal((await shared.store.getPlant(id))?.name, `plant ${id}`)
    })

    it('keeps plants and tokens over a restart', async () => {
      const url = await engine.newUrl()
      const before = await engine.open(url)
      const version = await before.createPlant({ id: 7n, name: 'Aloe', tag: '🌵' })
      await before.addToken(newTokenRecord())
      await before.close()
      const after = await engine.open(url)
      assert.deepEqual(await after.getPlant(7n), { id: 7n, name: 'Aloe', tag: '🌵', version })
      assert.equal((await after.listTokens()).length, 1)
    })

    it('finishes accepted writes before it closes', async () => {
      const url = await engine.newUrl()
      const closing = await engine.open(url)
      const writes = [1n, 2n, 3n].map((id) => closing.createPlant({ id, name: '' }))
      await closing.close()
      assert.deepEqual(
        (await Promise.all(writes)).map((outcome) => typeof outcome),
        ['bigint', 'bigint', 'bigint'],
      )
      const after = await engine.open(url)
      assert.notEqual(await after.getPlant(3n), undefined)
    })

    it('serves two openers of one database at once', async () => {
      const url = await engine.newUrl()
      const [one, two] = await Promise.all([engine.open(url), engine.open(url)])
      const outcomes = await Promise.all(
        Array.from({ length: 400 }, (_, index) =>
          (index % 2 ? one : two).createPlant({ id: BigInt(index >> 1), name: String(index) }),
        ),
      )
      assert.equal(outcomes.filter((outcome) => outcome === 'exists').length, 200)
      assert.deepEqual(await one.getPlant(199n), await two.getPlant(199n))
    })

    it('measures its queue, batches and size', async () => {
      await shared.store.createPlant({ id: 559n, name: 'Measured' })
      const { isUp, queuedWrites, batchItems, commitSeconds, sizes } = await shared.store.measure()
      assert.equal(isUp, true)
      assert.equal(queuedWrites, 0)
      assert.ok(batchItems.sum >= 1)
      assert.ok(commitSeconds.counts.some((count) => count > 0))
      const [data] = sizes
      assert.equal(data?.[0], 'data')
      assert.ok(Number(data?.[1]) > 4_000)
    })

    it('answers a ping', async () => {
      await shared.store.ping()
    })
  })
}
