import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { maxSnapshots } from '../../../src/store/snapshots.ts'
import type { PlantQuery, Store } from '../../../src/store/store.ts'
import type { Engine } from '../../support/engines.ts'
import { releaseAfterTest } from '../../support/release.ts'
import { everything } from '../../support/stores.ts'

const smallest = -(2n ** 63n)
const largest = 2n ** 63n - 1n

/** A store takes many plants in, and gives all of them out. */
export function testTransfers(engine: Engine, store: Store): void {
  describe('imports and snapshots', () => {
    it('imports many plants at once and reports the outcome of each', async () => {
      await store.createPlant({ id: 700n, name: 'same', tag: 'x' })
      await store.createPlant({ id: 701n, name: 'other' })
      await store.createPlant({ id: 698n, name: 'tagged', tag: 'x' })
      const imported = [
        { id: 699n, name: 'new' },
        { id: 700n, name: 'same', tag: 'x' },
        { id: 701n, name: 'mine' },
        { id: 698n, name: 'tagged' },
        { id: 702n, name: 'twice' },
        { id: 702n, name: 'twice' },
        { id: 702n, name: 'twice', tag: '' },
      ]
      assert.deepEqual(await store.importPlants(imported, 'keep'), [
        'stored',
        'already there',
        'conflict',
        'conflict',
        'stored',
        'already there',
        'conflict',
      ])
      assert.equal((await store.getPlant(701n))?.name, 'other')
      assert.deepEqual(await store.importPlants(imported.slice(0, 5), 'replace'), [
        'already there',
        'already there',
        'replaced',
        'replaced',
        'already there',
      ])
      assert.equal((await store.getPlant(701n))?.name, 'mine')
      for (const id of [698n, 702n]) {
        assert.equal(Object.hasOwn((await store.getPlant(id)) ?? {}, 'tag'), false)
      }
    })

    it('gives an imported plant a new version, unless it comes with one', async () => {
      const created = await store.createPlant({ id: 704n, name: 'first' })
      const imported = [
        { id: 704n, name: 'again' },
        { id: 703n, name: 'moved', version: 77n },
      ]
      assert.deepEqual(await store.importPlants(imported, 'replace'), ['replaced', 'stored'])
      const replaced = (await store.getPlant(704n))?.version
      assert.notEqual(replaced, created)
      assert.equal((await store.getPlant(703n))?.version, 77n)
    })

    it('shows one moment in a snapshot, whatever is written meanwhile', async () => {
      const own = await engine.open(await engine.newUrl())
      await own.createPlant({ id: 1n, name: 'one', tag: 'a' })
      await own.createPlant({ id: 2n, name: 'two' })
      const snapshot = await own.openSnapshot()
      releaseAfterTest(snapshot.close)
      await own.createPlant({ id: 3n, name: 'three', tag: 'a' })
      await own.deletePlant(1n, {})
      await own.replacePlant({ id: 2n, name: 'changed' }, {})
      const query = { after: undefined, tag: undefined, limit: 10 }
      const plants = (await Array.fromAsync(snapshot.walkPlants(query))).flat()
      assert.deepEqual(
        plants.map(({ id, name }) => [id, name]),
        [
          [1n, 'one'],
          [2n, 'two'],
        ],
      )
      assert.equal(await snapshot.countPlants(undefined), 2)
      assert.equal(await snapshot.countPlants('a'), 1)
      await snapshot.close()
      assert.equal((await own.listPlants(query)).plants[0]?.name, 'changed')
    })

    it('bounds the open snapshots, and opens another when one is closed', async () => {
      const own = await engine.open(await engine.newUrl())
      const open = async () => {
        const snapshot = await own.openSnapshot()
        releaseAfterTest(snapshot.close)
        return snapshot
      }
      const [first] = await Promise.all(Array.from({ length: maxSnapshots }, open))
      await assert.rejects(open, { number: 50300 })
      await first?.close()
      await first?.close()
      await open()
      await assert.rejects(open, { number: 50300 })
    })

    it('walks through every plant of a snapshot, whatever its text and size', async () => {
      const other = await engine.open(await engine.newUrl())
      const names = [
        '\\N',
        '\\',
        '\t\n\r\b\f\v',
        "'; --",
        'ü🌵',
        '',
        'x'.repeat(300_000),
        'y'.repeat(900_000),
      ]
      const plants = [smallest, -1n, 0n, 1n, 2n, 3n, 2n ** 53n + 1n, largest].map((id, index) => {
        const name = names[index] as string
        return index % 3 === 0 ? { id, name } : { id, name, tag: index % 2 === 0 ? "'\\N" : name }
      })
      const created = []
      for (const plant of plants) {
        created.push({ ...plant, version: await other.createPlant(plant) })
      }
      const snapshot = await other.openSnapshot()
      releaseAfterTest(snapshot.close)
      const walk = async (query: Partial<PlantQuery>) => {
        return (await Array.fromAsync(snapshot.walkPlants({ ...everything, ...query }))).flat()
      }
      assert.deepEqual(await walk({}), created)
      assert.deepEqual(await walk({ after: 0n, limit: 2 }), created.slice(3, 5))
      assert.deepEqual(await walk({ after: largest }), [])
      const tagged = created.filter(({ tag }) => tag === "'\\N")
      assert.deepEqual(await walk({ tag: "'\\N" }), tagged)
      assert.deepEqual(await walk({ tag: '' }), [created[5]])
      assert.deepEqual(await walk({ tag: 'none' }), [])
    })
  })
}
