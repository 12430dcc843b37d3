import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Engine } from '../../support/engines.ts'

const smallest = -(2n ** 63n)
const largest = 2n ** 63n - 1n

/** A store lists plants in pages. */
export function testLists(engine: Engine): void {
  describe('lists', () => {
    it('lists by id and by tag, in pages without gaps or overlaps', async () => {
      const other = await engine.open(await engine.newUrl())
      const ids = [smallest, -3n, 0n, 2n ** 53n + 1n, largest]
      for (const [index, id] of ids.entries()) {
        await other.createPlant(
          index % 2 ? { id, name: 'x', tag: 'odd' } : { id, name: 'x', tag: '' },
        )
      }
      const listed = async (after: bigint | undefined, tag: string | undefined, limit: number) =>
        (await other.listPlants({ after, tag, limit })).plants.map(({ id }) => id)
      assert.deepEqual(await listed(undefined, undefined, 10), ids)
      assert.deepEqual(await listed(undefined, undefined, 2), ids.slice(0, 2))
      assert.deepEqual(await listed(-3n, undefined, 2), ids.slice(2, 4))
      assert.deepEqual(await listed(largest, undefined, 2), [])
      assert.deepEqual(await listed(undefined, 'odd', 10), [ids[1], ids[3]])
      assert.deepEqual(await listed(undefined, '', 10), [ids[0], ids[2], ids[4]])
      assert.deepEqual(await listed(0n, '', 10), [largest])
      assert.deepEqual(await listed(undefined, 'none', 10), [])
      assert.deepEqual(
        await other.listIds({ after: -3n, tag: undefined, limit: 2 }),
        ids.slice(2, 4),
      )
      assert.deepEqual(await other.listIds({ after: undefined, tag: 'odd', limit: 9 }), [
        ids[1],
        ids[3],
      ])
      assert.deepEqual(await other.listIds({ after: largest, tag: undefined, limit: 9 }), [])
    })

    it('ends a page that becomes too large, and says so', async () => {
      const other = await engine.open(await engine.newUrl())
      const name = 'x'.repeat(400_000)
      for (const id of [1n, 2n, 3n, 4n]) await other.createPlant({ id, name, tag: name })
      const page = await other.listPlants({ after: undefined, tag: undefined, limit: 10 })
      assert.deepEqual([page.plants.length, page.isWhole], [1, false])
      const byTag = await other.listPlants({ after: 3n, tag: name, limit: 10 })
      assert.deepEqual([byTag.plants.length, byTag.isWhole], [1, true])
    })
  })
}
