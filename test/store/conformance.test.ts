import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { before, describe, it } from 'node:test'
import fc from 'fast-check'
import { Failure } from '../../src/contract/errors.ts'
import { isStorable } from '../../src/contract/text.ts'
import { maxSnapshots } from '../../src/store/snapshots.ts'
import {
  keyLifetimeMs,
  type PlantQuery,
  type Store,
  type TokenRecord,
} from '../../src/store/store.ts'
import { everyEngine, type StoreFault } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'

const smallest = -(2n ** 63n)
const largest = 2n ** 63n - 1n

/** The definition of an engine: anything that passes these tests. */
for (const engine of everyEngine) {
  describe(`a store on ${engine.name}`, () => {
    let store: Store
    before(async () => {
      store = await engine.open(await engine.newUrl())
    })

    it('returns a plant as it was created, with the version that the create returned', async () => {
      const version = await store.createPlant({ id: 1n, name: 'Monstera', tag: 'indoor' })
      assert.deepEqual(await store.getPlant(1n), {
        id: 1n,
        name: 'Monstera',
        tag: 'indoor',
        version,
      })
    })

    it('imports many plants at once and reports the outcome of each', async () => {
      await store.createPlant({ id: 700n, name: 'same', tag: 'x' })
      await store.createPlant({ id: 701n, name: 'other' })
      const imported = [
        { id: 699n, name: 'new' },
        { id: 700n, name: 'same', tag: 'x' },
        { id: 701n, name: 'mine' },
        { id: 702n, name: 'twice' },
        { id: 702n, name: 'twice' },
        { id: 702n, name: 'twice', tag: '' },
      ]
      assert.deepEqual(await store.importPlants(imported, 'keep'), [
        'stored',
        'already there',
        'conflict',
        'stored',
        'already there',
        'conflict',
      ])
      assert.equal((await store.getPlant(701n))?.name, 'other')
      assert.deepEqual(await store.importPlants(imported.slice(0, 4), 'replace'), [
        'already there',
        'already there',
        'replaced',
        'already there',
      ])
      assert.equal((await store.getPlant(701n))?.name, 'mine')
      assert.equal(Object.hasOwn((await store.getPlant(702n)) ?? {}, 'tag'), false)
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
      await own.deletePlant(1n, { match: undefined, noneMatch: undefined })
      await own.replacePlant(
        { id: 2n, name: 'changed' },
        { match: undefined, noneMatch: undefined },
      )
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

    it('keeps an absent tag absent and an empty one empty', async () => {
      await store.createPlant({ id: 2n, name: '' })
      await store.createPlant({ id: 3n, name: '', tag: '' })
      assert.equal(Object.hasOwn((await store.getPlant(2n)) ?? {}, 'tag'), false)
      assert.equal((await store.getPlant(3n))?.tag, '')
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
      assert.equal(await store.getPlant(404n), undefined)
    })

    it('refuses a second plant with the same id and keeps the first', async () => {
      const version = await store.createPlant({ id: 4n, name: 'first' })
      assert.equal(await store.createPlant({ id: 4n, name: 'second', tag: 'x' }), 'exists')
      assert.deepEqual(await store.getPlant(4n), { id: 4n, name: 'first', version })
    })

    it('lets the first of two creates in one batch win', async () => {
      const [first, second] = await Promise.all([
        store.createPlant({ id: 5n, name: 'first' }),
        store.createPlant({ id: 5n, name: 'second' }),
      ])
      assert.equal(typeof first, 'bigint')
      assert.equal(second, 'exists')
      assert.equal((await store.getPlant(5n))?.name, 'first')
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
      const text = fc.string({ unit: 'binary', maxLength: 200 }).filter(isStorable)
      await fc.assert(
        fc.asyncProperty(text, fc.option(text, { nil: undefined }), async (name, tag) => {
          const plant = tag === undefined ? { id: id++, name } : { id: id++, name, tag }
          const version = await store.createPlant(plant)
          assert.deepEqual(await store.getPlant(plant.id), { ...plant, version })
        }),
        { numRuns: 200 },
      )
    })

    it('gives each of many writes at once its own outcome', async () => {
      const ids = Array.from({ length: 1_500 }, (_, index) => BigInt(10_000 + (index % 1_000)))
      const outcomes = await Promise.all(
        ids.map((id) => store.createPlant({ id, name: `plant ${id}` })),
      )
      assert.equal(outcomes.filter((outcome) => outcome === 'exists').length, 500)
      assert.equal(new Set(outcomes).size, 1_001)
      for (const id of ids) assert.equal((await store.getPlant(id))?.name, `plant ${id}`)
    })

    it('keeps plants and tokens over a restart', async () => {
      const url = await engine.newUrl()
      const before = await engine.open(url)
      const version = await before.createPlant({ id: 7n, name: 'Aloe', tag: '🌵' })
      await before.addToken(newRecord())
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

    it('creates or replaces a plant, each time with a new version', async () => {
      const none = {}
      const created = await store.replacePlant({ id: 600n, name: 'a' }, none)
      const replaced = await store.replacePlant({ id: 600n, name: 'b', tag: 't' }, none)
      assert.ok(created !== 'condition failed' && replaced !== 'condition failed')
      assert.deepEqual([created.is, replaced.is], ['created', 'replaced'])
      assert.notEqual(created.version, replaced.version)
      assert.deepEqual(await store.getPlant(600n), {
        id: 600n,
        name: 'b',
        tag: 't',
        version: replaced.version,
      })
      const untagged = await store.replacePlant({ id: 600n, name: 'c' }, none)
      assert.ok(untagged !== 'condition failed')
      assert.deepEqual(await store.getPlant(600n), {
        id: 600n,
        name: 'c',
        version: untagged.version,
      })
    })

    it('changes a plant only if its condition holds', async () => {
      const version = (await store.createPlant({ id: 601n, name: 'a' })) as bigint
      const plant = { id: 601n, name: 'b' }
      assert.equal(await store.replacePlant(plant, { match: [version + 1n] }), 'condition failed')
      assert.equal(await store.replacePlant(plant, { match: [] }), 'condition failed')
      assert.equal(await store.replacePlant(plant, { noneMatch: '*' }), 'condition failed')
      assert.equal(
        await store.replacePlant({ ...plant, id: 602n }, { match: '*' }),
        'condition failed',
      )
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
      assert.deepEqual(
        outcomes.map((outcome) =>
          typeof outcome === 'bigint'
            ? 'created'
            : typeof outcome === 'object'
              ? outcome.is
              : outcome,
        ),
        ['created', 'deleted', 'created', 'replaced', 'exists', 'absent'],
      )
      assert.equal((await store.getPlant(603n))?.name, 'c')
    })

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
      t.mock.timers.setTime(now + keyLifetimeMs - 1)
      assert.equal(await store.createPlantOnce({ id: 621n, name: 'b' }, key), 'key reused')
      t.mock.timers.setTime(now + keyLifetimeMs)
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
      const stores = await Promise.all([
        engine.open(url, { batchItems: 3 }),
        engine.open(url, { batchItems: 3 }),
      ])
      const outcomes = await Promise.all(
        Array.from({ length: 30 }, (_, index) =>
          stores[index % 2]?.createPlantOnce({ id: 1n, name: 'a' }, { tokenId: 'tok', key: 'k' }),
        ),
      )
      const told = outcomes.map((outcome) => (typeof outcome === 'object' ? outcome : undefined))
      assert.equal(told.filter((outcome) => outcome?.isReplay === false).length, 1)
      assert.equal(new Set(told.map((outcome) => outcome?.version)).size, 1)
    })

    it('stores what it acknowledges when two openers create the same plants', async () => {
      const url = await engine.newUrl()
      const stores = await Promise.all([engine.open(url), engine.open(url)])
      for (let round = 0; round < 15; round++) {
        const ids = Array.from({ length: 20 }, (_, index) => BigInt(round * 20 + index))
        const outcomes = await Promise.all(
          stores.flatMap((one, opener) =>
            ids.map(async (id) => {
              // The second opener goes the other way and mixes plain creates in.
              const at = opener === 0 ? id : (ids[ids.length - 1 - (Number(id) % 20)] ?? id)
              if (opener === 1 && at % 5n === 0n)
                return { at, outcome: await one.createPlant({ id: at, name: 'plain' }) }
              const key = { tokenId: 'tok', key: String(at) }
              return { at, outcome: await one.createPlantOnce({ id: at, name: 'keyed' }, key) }
            }),
          ),
        )
        for (const { at, outcome } of outcomes) {
          const plant = await stores[0]?.getPlant(at)
          assert.ok(plant, `plant ${at} was acknowledged with ${String(outcome)} and is not there`)
          if (typeof outcome === 'object') assert.equal(plant.version, outcome.version)
          if (typeof outcome === 'bigint') assert.equal(plant.version, outcome)
        }
        const created = outcomes.filter(
          ({ outcome }) =>
            typeof outcome === 'bigint' || (typeof outcome === 'object' && !outcome.isReplay),
        )
        assert.equal(created.length, 20)
      }
    })

    it('stores what it acknowledges when two openers change the same plants', async () => {
      const url = await engine.newUrl()
      const stores = await Promise.all([engine.open(url), engine.open(url)])
      const ids = Array.from({ length: 20 }, (_, index) => BigInt(index))
      const contents = new Map<bigint, string>()
      const balances = new Map<bigint, number>()

      async function change(one: Store, id: bigint, turn: number): Promise<void> {
        const name = `${id} in turn ${turn}`
        const balance = (by: number) => balances.set(id, (balances.get(id) ?? 0) + by)
        if (turn % 3 === 2) {
          if ((await one.deletePlant(id, {})) === 'deleted') balance(-1)
          return
        }
        const outcome = await (turn % 3 === 0
          ? one.createPlant({ id, name })
          : one.replacePlant({ id, name }, {}))
        if (typeof outcome === 'string') return
        const { is, version } =
          typeof outcome === 'bigint' ? { is: 'created', version: outcome } : outcome
        if (is === 'created') balance(1)
        contents.set(version, name)
      }

      for (let round = 0; round < 10; round++) {
        await Promise.all(
          stores.flatMap((one, opener) =>
            (opener === 0 ? ids : ids.toReversed()).flatMap((id) =>
              [0, 1, 2].map((step) => change(one, id, round * 6 + step * 2 + opener)),
            ),
          ),
        )
        for (const id of ids) {
          const plant = await stores[round % 2]?.getPlant(id)
          // Each acknowledged create brings a plant, and each acknowledged delete takes one away.
          assert.equal(plant === undefined ? 0 : 1, balances.get(id) ?? 0, `plant ${id}`)
          if (plant) assert.equal(contents.get(plant.version), plant.name)
        }
      }
    })

    it('binds a key to one plant, though two openers use it for two at once', async () => {
      const url = await engine.newUrl()
      const stores = await Promise.all([engine.open(url), engine.open(url)])
      for (let round = 0; round < 30; round++) {
        const key = { tokenId: 'tok', key: String(round) }
        const ids = [BigInt(round * 2), BigInt(round * 2 + 1)]
        const outcomes = await Promise.all(
          ids.map((id, opener) => stores[opener]?.createPlantOnce({ id, name: '' }, key)),
        )
        assert.equal(outcomes.filter((outcome) => outcome === 'key reused').length, 1)
        const stored = await Promise.all(ids.map((id) => stores[0]?.getPlant(id)))
        assert.equal(stored.filter((plant) => plant !== undefined).length, 1)
      }
    })

    it('lets one of many create a plant that must not exist', async () => {
      const url = await engine.newUrl()
      const stores = await Promise.all([
        engine.open(url, { batchItems: 2 }),
        engine.open(url, { batchItems: 2 }),
      ])
      for (let id = 0n; id < 20n; id++) {
        const outcomes = await Promise.all(
          Array.from({ length: 8 }, (_, index) =>
            stores[index % 2]?.replacePlant({ id, name: String(index) }, { noneMatch: '*' }),
          ),
        )
        assert.equal(outcomes.filter((outcome) => outcome !== 'condition failed').length, 1)
      }
    })

    it('forgets old keys, a few at a time, and keeps the others', async () => {
      const other = await engine.open(await engine.newUrl())
      const uses = Array.from({ length: 600 }, (_, index) =>
        other.createPlantOnce(
          { id: BigInt(index), name: '' },
          { tokenId: 'tok', key: String(index) },
        ),
      )
      await Promise.all(uses)
      assert.equal(await other.forgetKeys(0), true)
      const replay = await other.createPlantOnce({ id: 1n, name: '' }, { tokenId: 'tok', key: '1' })
      assert.ok(typeof replay === 'object' && replay.isReplay)
      const later = Date.now() + 1
      assert.equal(await other.forgetKeys(later), false)
      assert.equal(await other.forgetKeys(later), true)
      assert.equal(
        await other.createPlantOnce({ id: 1n, name: '' }, { tokenId: 'tok', key: '1' }),
        'exists',
      )
    })

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
        const all = { after: undefined, tag: undefined, limit: Number.POSITIVE_INFINITY }
        return (await Array.fromAsync(snapshot.walkPlants({ ...all, ...query }))).flat()
      }
      assert.deepEqual(await walk({}), created)
      assert.deepEqual(await walk({ after: 0n, limit: 2 }), created.slice(3, 5))
      assert.deepEqual(await walk({ after: largest }), [])
      assert.deepEqual(
        await walk({ tag: "'\\N" }),
        created.filter(({ tag }) => tag === "'\\N"),
      )
      assert.deepEqual(await walk({ tag: '' }), [created[5]])
      assert.deepEqual(await walk({ tag: 'none' }), [])
    })

    it('measures its queue, batches and size', async () => {
      await store.createPlant({ id: 559n, name: 'Measured' })
      const { isUp, queuedWrites, batchItems, commitSeconds, sizes } = await store.measure()
      assert.equal(isUp, true)
      assert.equal(queuedWrites, 0)
      assert.ok(batchItems.sum >= 1)
      assert.ok(commitSeconds.some(([, { counts }]) => counts.some((count) => count > 0)))
      const [data] = sizes
      assert.equal(data?.[0], 'data')
      assert.ok(Number(data?.[1]) > 4_000)
    })

    it('answers a ping', async () => {
      await store.ping()
    })

    it('finds a token by its hash, as it was added', async () => {
      const record = newRecord({ expiresAt: 4_102_444_800_000 })
      await store.addToken(record)
      assert.deepEqual(await store.findToken(record.hash), record)
      assert.equal(await store.findToken(randomBytes(32)), undefined)
    })

    it('revokes a token once, and changes the revision with it', async () => {
      const record = newRecord()
      await store.addToken(record)
      const before = await store.tokenRevision()
      assert.equal(await store.revokeToken(record.id, 17), 'revoked')
      assert.equal(await store.revokeToken(record.id, 18), 'revoked before')
      assert.equal(await store.revokeToken('tok_none', 19), 'unknown')
      assert.equal((await store.findToken(record.hash))?.revokedAt, 17)
      assert.notEqual(await store.tokenRevision(), before)
    })

    it('deletes tokens for good, and changes the revision with them', async () => {
      const [one, two, three] = [newRecord(), newRecord(), newRecord()]
      for (const record of [one, two, three]) await store.addToken(record)
      const before = await store.tokenRevision()
      assert.equal(await store.deleteTokens(['tok_none']), 0)
      assert.equal(await store.tokenRevision(), before)
      assert.equal(await store.deleteTokens([one.id, 'tok_none', two.id]), 2)
      assert.notEqual(await store.tokenRevision(), before)
      assert.equal(await store.findToken(one.hash), undefined)
      assert.notEqual(await store.findToken(three.hash), undefined)
    })

    it('keeps a first token as it was added', async () => {
      const other = await engine.open(await engine.newUrl())
      const record = newRecord()
      await other.addFirstToken(record)
      assert.deepEqual(await other.listTokens(), [record])
    })

    it('records the last use of a token, and never an earlier one', async () => {
      const record = newRecord()
      await store.addToken(record)
      await store.noteTokenUses([{ id: record.id, at: 20 }])
      await store.noteTokenUses([{ id: record.id, at: 10 }])
      assert.equal((await store.findToken(record.hash))?.lastUsedAt, 20)
    })

    it('goes on after a failed write', async () => {
      const record = newRecord()
      await store.addToken(record)
      await assert.rejects(store.addToken(record))
      assert.equal(typeof (await store.createPlant({ id: 500n, name: '' })), 'bigint')
    })

    it('refuses writes when the queue holds too many bytes', async () => {
      const url = await engine.newUrl()
      const bounded = await engine.open(url, { queueBytes: 1_000_000, batchBytes: 1 })
      const release = await engine.block(url)
      const name = 'x'.repeat(200_000)
      const outcomes = Promise.allSettled(
        Array.from({ length: 9 }, (_, id) => bounded.createPlant({ id: BigInt(id), name })),
      )
      await release()
      const numbers = (await outcomes).map(numberOf)
      assert.ok(numbers.includes(50300) && numbers.includes(undefined), String(numbers))
    })

    it('lists tokens in the order of their creation', async () => {
      const other = await engine.open(await engine.newUrl())
      await other.addToken(newRecord({ name: 'b', createdAt: 2 }))
      await other.addToken(newRecord({ name: 'a', createdAt: 1 }))
      assert.deepEqual(
        (await other.listTokens()).map(({ name }) => name),
        ['a', 'b'],
      )
    })

    it('adds a first token only while it is empty, and only one', async () => {
      const other = await engine.open(await engine.newUrl())
      const outcomes = await Promise.all([
        other.addFirstToken(newRecord()),
        other.addFirstToken(newRecord()),
      ])
      assert.deepEqual(outcomes, ['added', 'not first'])
      const planted = await engine.open(await engine.newUrl())
      await planted.createPlant({ id: 1n, name: '' })
      assert.equal(await planted.addFirstToken(newRecord()), 'not first')
    })

    const faults: [StoreFault, number][] = [
      ['disk full', 50700],
      ['not confirmed', 50400],
      ['not reachable', 50301],
      ['queue full', 50300],
    ]
    for (const [fault, number] of faults) {
      it(`fails every waiting write with ${number} when it is ${fault}`, async () => {
        const { store: broken, witness } = await engine.openWithFault(fault)
        const outcomes = await Promise.allSettled(
          [8n, 9n].map((id) => broken.createPlant({ id, name: 'x'.repeat(100_000) })),
        )
        for (const outcome of outcomes) assert.equal(numberOf(outcome), number)
        if (fault !== 'not confirmed') await assertNothingStored(witness)
      })
    }
  })
}

function numberOf(outcome: PromiseSettledResult<unknown>): number | undefined {
  return outcome.status === 'rejected' && outcome.reason instanceof Failure
    ? outcome.reason.number
    : undefined
}

async function assertNothingStored(store: Store): Promise<void> {
  assert.equal(await store.getPlant(8n), undefined)
  assert.equal(await store.getPlant(9n), undefined)
  assert.equal((await store.getPlant(1n))?.name, 'Aloe')
}

function newRecord(members: Partial<TokenRecord> = {}): TokenRecord {
  return {
    id: `tok_${randomBytes(6).toString('hex')}`,
    hash: randomBytes(32),
    name: 'test',
    scopes: ['plants:read', 'plants:write'],
    createdAt: 1_700_000_000_000,
    expiresAt: undefined,
    revokedAt: undefined,
    lastUsedAt: undefined,
    lastFour: 'aB3z',
    ...members,
  }
}
