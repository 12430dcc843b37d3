import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limits } from '../../../src/contract/limits.ts'
import { searchPlants } from '../../../src/store/lists.ts'
import type { Engine } from '../../support/engines.ts'
import { storeMany } from '../../support/stores.ts'

const smallest = -(2n ** 63n)
const largest = 2n ** 63n - 1n
const all = { after: undefined, tag: undefined }
const toId = ({ id }: { readonly id: bigint }) => id

/** A store lists plants in pages. */
export function testLists(engine: Engine): void {
  describe('lists', () => {
    it('lists by id and by tag, in either order, in pages without gaps or overlaps', async () => {
      const other = await engine.open(await engine.newUrl())
      const ids = [smallest, -3n, 0n, 2n ** 53n + 1n, largest]
      for (const [index, id] of ids.entries()) {
        await other.createPlant({ id, name: 'x', tag: index % 2 ? 'odd' : '' })
      }
      const [first, second, third, fourth, last] = ids
      type Row = [order: 'asc' | 'desc', after: bigint | undefined, tag: string | undefined]
      const pages: [...Row, limit: number, expected: unknown[]][] = [
        ['asc', undefined, undefined, 10, ids],
        ['asc', undefined, undefined, 2, [first, second]],
        ['asc', -3n, undefined, 2, [third, fourth]],
        ['asc', largest, undefined, 2, []],
        ['asc', undefined, 'odd', 10, [second, fourth]],
        ['asc', undefined, '', 10, [first, third, last]],
        ['asc', 0n, '', 10, [last]],
        ['asc', undefined, 'none', 10, []],
        ['desc', undefined, undefined, 10, ids.toReversed()],
        ['desc', 0n, undefined, 1, [second]],
        ['desc', 4n, undefined, 10, [third, second, first]],
        ['desc', smallest, undefined, 10, []],
        ['desc', undefined, '', 10, [last, third, first]],
        ['desc', 0n, '', 1, [first]],
        ['desc', smallest, '', 10, []],
      ]
      for (const [order, after, tag, limit, expected] of pages) {
        const { plants } = await other.listPlants({ after, tag, limit, order })
        assert.deepEqual(plants.map(toId), expected, `${order} ${after} ${tag} ${limit}`)
      }
    })

    it('ends a page that becomes too large in bytes, and says so', async () => {
      const other = await engine.open(await engine.newUrl())
      const name = '木'.repeat(133_333)
      for (const id of [1n, 2n, 3n, 4n]) await other.createPlant({ id, name, tag: name })
      const page = await other.listPlants({ after: undefined, tag: undefined, limit: 10 })
      assert.deepEqual([page.plants.length, page.next], [1, 1n])
      const byTag = await other.listPlants({ after: 3n, tag: name, limit: 10 })
      assert.deepEqual([byTag.plants.length, byTag.next], [1, undefined])
      const last = await other.listPlants({ ...all, order: 'desc', limit: 10 })
      assert.deepEqual([last.plants[0]?.id, last.plants.length, last.next], [4n, 1, 4n])
    })

    it('has every plant of a long page once, in either order and by tag', async () => {
      const other = await engine.open(await engine.newUrl())
      const ids = Array.from({ length: 300 }, (_, index) => BigInt(index))
      const plants = ids.map((id) => ({ id, name: 'x', tag: id % 2n === 0n ? 'even' : 'odd' }))
      await other.importPlants(plants, 'keep')
      for (const tag of [undefined, 'even']) {
        const wanted = ids.filter((id) => tag === undefined || id % 2n === 0n)
        for (const limit of [128, 129, 256, 300, 1_000]) {
          const up = await other.listPlants({ after: undefined, tag, limit })
          assert.deepEqual(up.plants.map(toId), wanted.slice(0, limit))
          const down = await other.listPlants({ after: undefined, tag, limit, order: 'desc' })
          assert.deepEqual(down.plants.map(toId), wanted.toReversed().slice(0, limit))
          assert.deepEqual([up.next, down.next], [undefined, undefined])
        }
      }
    })

    it('examines a bounded number of plants in a search, and continues after the last', async () => {
      const other = await engine.open(await engine.newUrl())
      const count = limits.examinedPlants + 1
      const plants = Array.from({ length: count }, (_, id) => ({ id: BigInt(id), name: `n${id}` }))
      await other.importPlants(plants, 'keep')
      const find = async (name: string, query = {}) => {
        const found = await searchPlants(other, { ...all, limit: 2, name, ...query })
        return [found.plants.map(({ id }) => id), found.next]
      }
      const lastId = BigInt(limits.examinedPlants)
      assert.deepEqual(await find(`N${lastId}`), [[], lastId - 1n])
      assert.deepEqual(await find(`N${lastId}`, { after: lastId - 1n }), [[lastId], undefined])
      assert.deepEqual(await find('N499'), [[499n, 4990n], 4990n])
      assert.deepEqual(await find('N499', { order: 'desc' }), [[4999n, 4998n], 4998n])
      assert.deepEqual(await find('n0', { order: 'desc' }), [[], 1n])
      assert.deepEqual(await find('n0', { order: 'desc', after: 1n }), [[0n], undefined])
      assert.deepEqual(await find('', { after: lastId - 2n }), [[lastId - 1n, lastId], undefined])
      assert.deepEqual(await find('n1', { tag: 'none' }), [[], undefined])
    })

    it('examines 1 MiB of texts in a search, and continues after the last', async () => {
      const other = await engine.open(await engine.newUrl())
      for (const id of [1n, 2n, 3n]) await other.createPlant({ id, name: 'é'.repeat(250_000) })
      const first = await searchPlants(other, { ...all, limit: 2, name: 'x' })
      assert.deepEqual(first, { plants: [], next: 2n })
      const rest = await searchPlants(other, { ...all, after: 2n, limit: 2, name: 'É' })
      assert.deepEqual([rest.plants.length, rest.next], [1, undefined])
    })

    it('examines 1 MiB of texts, of however many plants', async () => {
      const other = await engine.open(await engine.newUrl())
      await storeMany(other, 0, 1_100, 'n'.repeat(1_000))
      const found = await searchPlants(other, { ...all, limit: 2, name: 'x' })
      assert.deepEqual(found, { plants: [], next: 1_047n })
    })
  })
}
