import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { maxFailures, maxReceivers } from '../../src/store/receivers.ts'
import type { Store } from '../../src/store/store.ts'
import { everyEngine } from '../support/engines.ts'
import { newDelivery, newReceiver, newSaved } from '../support/receiver-record.ts'

const leaseMs = 60_000
const largest = 2n ** 63n - 1n

for (const engine of everyEngine) {
  describe(`the receivers of a store on ${engine.name}`, () => {
    let url: string
    let store: Store
    beforeEach(async () => {
      url = await engine.newUrl()
      store = await engine.open(url)
    })

    it('keeps a receiver as it was added, with and without optional members', async () => {
      const plain = newReceiver()
      const full = newReceiver({
        id: 'whk_2',
        types: ['plant.created', 'plant.deleted'],
        secrets: { current: 'whsec_Mg==', previous: 'whsec_MQ==', previousUntil: 2 ** 41 },
        state: 'paused',
        reason: 'maintenance',
        createdAt: 2,
        progress: {
          position: 'a-1',
          ahead: ['a-3', 'a-4'],
          lastSuccessAt: 3,
          lastFailureAt: 4,
          lastFailure: 'answered 500',
          failingSince: 4,
        },
      })
      assert.equal(await store.receivers.add(full), 'added')
      assert.equal(await store.receivers.add(plain), 'added')
      assert.deepEqual(await store.receivers.list(), [plain, full])
    })

    it(`refuses more than ${maxReceivers} receivers, also when they are added at once`, async () => {
      const other = await engine.open(url)
      const outcomes = await Promise.all(
        Array.from({ length: maxReceivers + 4 }, (_, index) =>
          (index % 2 ? store : other).receivers.add(newReceiver({ id: `whk_${index}` })),
        ),
      )
      assert.equal(outcomes.filter((one) => one === 'too many').length, 4)
      assert.equal((await store.receivers.list()).length, maxReceivers)
    })

    it('pauses, resumes, changes secrets and removes, and tells by a revision', async () => {
      await store.receivers.add(newReceiver())
      const revisions = [await store.receivers.revision()]
      const note = async () => revisions.push(await store.receivers.revision())
      const secrets = { current: 'b', previous: 'a', previousUntil: 9 }
      assert.equal(
        await store.receivers.change('whk_1', { kind: 'pause', reason: 'why' }),
        'changed',
      )
      await note()
      const [paused] = await store.receivers.list()
      assert.deepEqual([paused?.state, paused?.reason], ['paused', 'why'])
      assert.equal(
        await store.receivers.change('whk_1', { kind: 'set secrets', secrets }),
        'changed',
      )
      await note()
      assert.equal(await store.receivers.change('whk_1', { kind: 'resume' }), 'changed')
      await note()
      assert.deepEqual(await store.receivers.list(), [newReceiver({ secrets })])
      assert.equal(await store.receivers.remove('whk_1'), 'removed')
      await note()
      assert.deepEqual(await store.receivers.list(), [])
      assert.equal(await store.receivers.change('whk_1', { kind: 'resume' }), 'unknown')
      assert.equal(await store.receivers.remove('whk_1'), 'unknown')
      assert.equal(new Set(revisions).size, revisions.length)
    })

    it('gives the lease of a receiver to one owner at a time', async () => {
      const other = await engine.open(url)
      await store.receivers.add(newReceiver())
      const both = await Promise.all([
        store.receivers.claim('one', leaseMs),
        other.receivers.claim('two', leaseMs),
      ])
      assert.deepEqual(both.flat(), [{ id: 'whk_1', epoch: 1 }])
      const [holder, rival] = both[0]?.length ? ['one', 'two'] : ['two', 'one']
      assert.deepEqual(await store.receivers.claim(holder as string, leaseMs), [
        { id: 'whk_1', epoch: 1 },
      ])
      await store.receivers.release(holder as string)
      assert.deepEqual(await store.receivers.claim(rival as string, leaseMs), [
        { id: 'whk_1', epoch: 2 },
      ])
    })

    it('gives a lease that ran out, or that a clock put too far ahead, to the next', async () => {
      await store.receivers.add(newReceiver())
      await store.receivers.claim('gone', 0)
      assert.deepEqual(await store.receivers.claim('next', leaseMs), [{ id: 'whk_1', epoch: 2 }])
      assert.deepEqual(await store.receivers.claim('other', leaseMs), [])
      assert.deepEqual(await store.receivers.claim('other', leaseMs / 3), [
        { id: 'whk_1', epoch: 3 },
      ])
    })

    it('gives nobody the lease of a receiver that is paused', async () => {
      await store.receivers.add(newReceiver({ state: 'paused' }))
      assert.deepEqual(await store.receivers.claim('one', leaseMs), [])
    })

    it('saves the progress of the holder of the lease, and of nobody else', async () => {
      await store.receivers.add(newReceiver())
      const [claim] = await store.receivers.claim('one', leaseMs)
      assert.ok(claim)
      const progress = {
        position: 'p2',
        ahead: ['p5', 'p7'],
        lastSuccessAt: 11,
        lastFailureAt: 12,
        lastFailure: 'no answer',
        failingSince: 12,
      }
      const saved = newSaved({ ...claim, progress, kept: [newDelivery()] })
      assert.deepEqual(await store.receivers.save('one', [saved]), [])
      assert.deepEqual((await store.receivers.list())[0]?.progress, progress)
      const wrong = newSaved({ ...claim, kept: [newDelivery({ position: 'p9' })], done: ['p1'] })
      assert.deepEqual(await store.receivers.save('two', [wrong]), ['whk_1'])
      assert.deepEqual(await store.receivers.save('one', [{ ...wrong, epoch: 0 }]), ['whk_1'])
      assert.deepEqual(await store.receivers.save('one', [{ ...wrong, id: 'whk_0' }]), ['whk_0'])
      assert.deepEqual((await store.receivers.list())[0]?.progress, progress)
      assert.equal((await store.receivers.listDeliveries('whk_1', 'waiting')).length, 1)
    })

    it('pauses a receiver and reports a gap together with its progress', async () => {
      await store.receivers.add(newReceiver())
      const [claim] = await store.receivers.claim('one', leaseMs)
      assert.ok(claim)
      const before = await store.receivers.revision()
      await store.receivers.save('one', [newSaved({ ...claim, gap: 'some are lost' })])
      const [active] = await store.receivers.list()
      assert.deepEqual([active?.state, active?.reason], ['active', 'some are lost'])
      await store.receivers.save('one', [newSaved({ ...claim, pause: 'gone' })])
      const [paused] = await store.receivers.list()
      assert.deepEqual([paused?.state, paused?.reason], ['paused', 'gone'])
      assert.notEqual(await store.receivers.revision(), before)
    })

    it('keeps deliveries in the order in which they came, with their plants', async () => {
      await store.receivers.add(newReceiver())
      const [claim] = await store.receivers.claim('one', leaseMs)
      assert.ok(claim)
      const plain = newDelivery({
        position: 'p0',
        plantId: largest,
        plant: { id: largest, name: '' },
        lastStatus: undefined,
      })
      const kept = [newDelivery(), plain, newDelivery({ position: 'p3' })]
      await store.receivers.save('one', [newSaved({ ...claim, kept })])
      const again = { ...newDelivery(), attempts: 2, dueAt: 2_000, plant: undefined }
      await store.receivers.save('one', [newSaved({ ...claim, kept: [again], done: ['p3'] })])
      const { plant: _, ...first } = again
      const { plant: __, ...second } = plain
      assert.deepEqual(await store.receivers.listDeliveries('whk_1', 'waiting'), [first, second])
      assert.deepEqual(await store.receivers.findPlant('whk_1', 'p1'), newDelivery().plant)
      assert.deepEqual(await store.receivers.findPlant('whk_1', 'p0'), plain.plant)
      assert.equal(await store.receivers.findPlant('whk_1', 'p3'), undefined)
      await store.receivers.remove('whk_1')
      assert.deepEqual(await store.receivers.listDeliveries('whk_1', 'waiting'), [])
    })

    it('keeps failures apart until they are retried, and forgets the oldest', async () => {
      await store.receivers.add(newReceiver())
      const [claim] = await store.receivers.claim('one', leaseMs)
      assert.ok(claim)
      const kept = Array.from({ length: maxFailures + 1 }, (_, index) =>
        newDelivery({ position: `p${index}`, attempts: 11, dueAt: undefined }),
      )
      await store.receivers.save('one', [newSaved({ ...claim, kept: [newDelivery()] })])
      await store.receivers.save('one', [newSaved({ ...claim, kept: kept.slice(2) })])
      await store.receivers.save('one', [newSaved({ ...claim, kept: kept.slice(0, 2) })])
      const failed = await store.receivers.listDeliveries('whk_1', 'failed')
      assert.equal(failed.length, maxFailures)
      assert.equal(failed.at(-1)?.position, 'p0')
      assert.deepEqual(await store.receivers.listDeliveries('whk_1', 'waiting'), [])
      const before = await store.receivers.revision()
      assert.equal(await store.receivers.retryFailures('whk_1', 77), maxFailures)
      assert.notEqual(await store.receivers.revision(), before)
      const [first] = await store.receivers.listDeliveries('whk_1', 'waiting')
      assert.deepEqual([first?.attempts, first?.dueAt], [0, 77])
      assert.equal(await store.receivers.retryFailures('whk_1', 77), 0)
    })

    it('adds a delivery by hand, once for each position', async () => {
      await store.receivers.add(newReceiver())
      await store.receivers.addDelivery('whk_1', newDelivery({ dueAt: undefined }))
      await store.receivers.addDelivery('whk_1', newDelivery({ attempts: 0, dueAt: 5 }))
      const found = await store.receivers.listDeliveries('whk_1', 'waiting')
      assert.deepEqual(
        found.map(({ attempts, dueAt }) => [attempts, dueAt]),
        [[0, 5]],
      )
    })
  })
}
