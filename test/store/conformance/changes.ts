import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Store } from '../../../src/store/store.ts'
import type { Engine } from '../../support/engines.ts'
import type { Shared } from './shared.ts'

/** A store changes plants. */
export function testChanges(engine: Engine, shared: Shared): void {
  describe('changes', () => {
    it('creates or replaces a plant, each time with a new version', async () => {
      const none = {}
      const created = await shared.store.replacePlant({ id: 600n, name: 'a' }, none)
      const replaced = await shared.store.replacePlant({ id: 600n, name: 'b', tag: 't' }, none)
      assert.ok(created !== 'condition failed' && replaced !== 'condition failed')
      assert.deepEqual([created.kind, replaced.kind], ['created', 'replaced'])
      assert.notEqual(created.version, replaced.version)
      assert.deepEqual(await shared.store.getPlant(600n), {
        id: 600n,
        name: 'b',
        tag: 't',
        version: replaced.version,
      })
      const untagged = await shared.store.replacePlant({ id: 600n, name: 'c' }, none)
      assert.ok(untagged !== 'condition failed')
      assert.deepEqual(await shared.store.getPlant(600n), {
        id: 600n,
        name: 'c',
        version: untagged.version,
      })
    })

    it('changes a plant only if its condition holds', async () => {
      const version = (await shared.store.createPlant({ id: 601n, name: 'a' })) as bigint
      const plant = { id: 601n, name: 'b' }
      assert.equal(
        await shared.store.replacePlant(plant, { match: [version + 1n] }),
        'condition failed',
      )
      assert.equal(await shared.store.replacePlant(plant, { match: [] }), 'condition failed')
      assert.equal(await shared.store.replacePlant(plant, { noneMatch: '*' }), 'condition failed')
      assert.equal(
        await shared.store.replacePlant({ ...plant, id: 602n }, { match: '*' }),
        'condition failed',
      )
      assert.equal(
        await shared.store.deletePlant(601n, { match: [version + 1n] }),
        'condition failed',
      )
      assert.equal((await shared.store.getPlant(601n))?.version, version)
      assert.equal(await shared.store.getPlant(602n), undefined)
      assert.notEqual(
        await shared.store.replacePlant(plant, { match: [1n, version] }),
        'condition failed',
      )
      assert.equal(await shared.store.deletePlant(601n, { match: [version] }), 'condition failed')
      assert.equal(await shared.store.deletePlant(601n, { match: '*' }), 'deleted')
      assert.equal(await shared.store.deletePlant(601n, { match: '*' }), 'absent')
    })

    it('applies the writes of one batch in order', async () => {
      const outcomes = await Promise.all([
        shared.store.createPlant({ id: 603n, name: 'a' }),
        shared.store.deletePlant(603n, {}),
        shared.store.createPlant({ id: 603n, name: 'b' }),
        shared.store.replacePlant({ id: 603n, name: 'c' }, { match: '*' }),
        shared.store.createPlant({ id: 603n, name: 'd' }),
        shared.store.deletePlant(604n, {}),
      ])
      assert.deepEqual(
        outcomes.map((outcome) =>
          typeof outcome === 'bigint'
            ? 'created'
            : typeof outcome === 'object'
              ? outcome.kind
              : outcome,
        ),
        ['created', 'deleted', 'created', 'replaced', 'exists', 'absent'],
      )
      assert.equal((await shared.store.getPlant(603n))?.name, 'c')
    })

    it('stores what it acknowledges when two openers create the same plants', async () => {
      const url = await engine.newUrl()
      const stores = await Promise.all([engine.open(url), engine.open(url)])
      for (let round = 0; round < 8; round++) {
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
        const { kind, version } =
          typeof outcome === 'bigint' ? { kind: 'created', version: outcome } : outcome
        if (kind === 'created') balance(1)
        contents.set(version, name)
      }

      for (let round = 0; round < 6; round++) {
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

    it('lets one of many create a plant that must not exist', async () => {
      const url = await engine.newUrl()
      const stores = await Promise.all([
        engine.open(url, { batchItems: 2 }),
        engine.open(url, { batchItems: 2 }),
      ])
      for (let id = 0n; id < 10n; id++) {
        const outcomes = await Promise.all(
          Array.from({ length: 8 }, (_, index) =>
            stores[index % 2]?.replacePlant({ id, name: String(index) }, { noneMatch: '*' }),
          ),
        )
        assert.equal(outcomes.filter((outcome) => outcome !== 'condition failed').length, 1)
      }
    })
  })
}
