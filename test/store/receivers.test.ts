import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { maxFailures, maxReceivers, type ReceiverStore } from '../../src/store/receivers.ts'
import type { Store } from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'
import { newDelivery, newReceiver, newSaved, newTaken } from '../support/receiver-record.ts'

const leaseMs = 60_000
const largest = 2n ** 63n - 1n
const toPosition = (place: string) => `0123456789ab-${place}-nonce`

for (const engine of engines) {
  describe(`the receivers of a store on ${engine.name}`, () => {
    let url: string
    let store: Store
    let receivers: ReceiverStore
    beforeEach(async () => {
      url = await engine.newUrl()
      store = await engine.open(url)
      receivers = store.receivers
    })

    async function claimOne() {
      const [claim] = await receivers.claim('one', leaseMs)
      return claim ?? assert.fail()
    }

    async function addAndClaim() {
      await receivers.add(newReceiver())
      return claimOne()
    }

    /** What a retry changes of the deliveries that wait. */
    async function readAttempts() {
      const waiting = await receivers.listDeliveries('whk_1', 'waiting')
      return waiting.map(({ attempts, dueAt }) => [attempts, dueAt])
    }

    async function readAll() {
      const [receiver] = await receivers.list()
      const waiting = await receivers.listDeliveries('whk_1', 'waiting')
      const { progress, state } = receiver ?? assert.fail()
      return { progress, state, waiting: waiting.map(({ position }) => position) }
    }

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
      assert.equal(await receivers.add(full), 'added')
      assert.equal(await receivers.add(plain), 'added')
      assert.deepEqual(await receivers.list(), [plain, full])
    })

    it(`refuses more than ${maxReceivers} receivers, also when they are added at once`, async () => {
      const other = await engine.open(url)
      const outcomes = await Promise.all(
        Array.from({ length: maxReceivers + 4 }, (_, index) =>
          (index % 2 ? store : other).receivers.add(newReceiver({ id: `whk_${index}` })),
        ),
      )
      assert.equal(outcomes.filter((one) => one === 'too many').length, 4)
      assert.equal((await receivers.list()).length, maxReceivers)
    })

    it('pauses, resumes, changes secrets and removes, and tells by a revision', async () => {
      await receivers.add(newReceiver())
      const revisions = [await receivers.revision()]
      const note = async () => revisions.push(await receivers.revision())
      const secrets = { current: 'b', previous: 'a', previousUntil: 9 }
      assert.equal(await receivers.change('whk_1', { kind: 'pause', reason: 'why' }), 'changed')
      await note()
      const [paused] = await receivers.list()
      assert.deepEqual([paused?.state, paused?.reason], ['paused', 'why'])
      assert.equal(await receivers.change('whk_1', { kind: 'set secrets', secrets }), 'changed')
      await note()
      assert.equal(await receivers.change('whk_1', { kind: 'resume' }), 'changed')
      await note()
      assert.deepEqual(await receivers.list(), [newReceiver({ secrets })])
      assert.equal(await receivers.remove('whk_1'), 'removed')
      await note()
      assert.deepEqual(await receivers.list(), [])
      assert.equal(await receivers.change('whk_1', { kind: 'resume' }), 'unknown')
      assert.equal(await receivers.remove('whk_1'), 'unknown')
      assert.equal(new Set(revisions).size, revisions.length)
    })

    it('gives the lease of a receiver to one owner at a time', async () => {
      const other = await engine.open(url)
      await receivers.add(newReceiver())
      const both = await Promise.all([
        receivers.claim('one', leaseMs),
        other.receivers.claim('two', leaseMs),
      ])
      const [first = assert.fail(), ...others] = both.flat()
      assert.deepEqual(others, [])
      const [[holder, its], [rival]] = both[0]?.length
        ? ([['one', store], ['two']] as const)
        : ([['two', other], ['one']] as const)
      assert.deepEqual(await its.receivers.claim(holder, leaseMs), [first])
      await receivers.release(holder)
      const [next = assert.fail()] = await receivers.claim(rival, leaseMs)
      assert.ok(next.epoch > first.epoch)
    })

    it('gives a lease that ran out, or that a clock put too far ahead, to the next', async () => {
      await receivers.add(newReceiver())
      const [gone = assert.fail()] = await receivers.claim('gone', 0)
      const [next = assert.fail()] = await receivers.claim('next', leaseMs)
      assert.deepEqual(await receivers.claim('other', leaseMs), [])
      const [other = assert.fail()] = await receivers.claim('other', leaseMs / 3)
      assert.ok(other.epoch > next.epoch && next.epoch > gone.epoch)
    })

    it('renews the lease of a receiver that is paused, and gives it to nobody', async () => {
      await receivers.add(newReceiver({ state: 'paused' }))
      assert.deepEqual(await receivers.claim('one', leaseMs), [])
      await receivers.change('whk_1', { kind: 'resume' })
      const claim = await claimOne()
      await receivers.change('whk_1', { kind: 'pause', reason: 'why' })
      assert.deepEqual(await claimOne(), claim)
      await receivers.change('whk_1', { kind: 'resume' })
      assert.deepEqual(await receivers.claim('other', leaseMs), [])
    })

    it('takes and saves for the holder of the lease, and for nobody else', async () => {
      const claim = await addAndClaim()
      const deliveries = [newDelivery(), newDelivery({ position: 'p2' })]
      const taken = newTaken({ ...claim, position: 'p2', ahead: ['p5', 'p7'], deliveries })
      assert.equal(await receivers.take('one', taken), true)
      const times = { lastSuccessAt: 11, lastFailureAt: 12, lastFailure: 'no', failingSince: 12 }
      const saved = newSaved({ ...claim, times, done: ['p1'] })
      assert.equal(await receivers.save('one', saved), true)
      const before = await readAll()
      assert.deepEqual(before.progress, { position: 'p2', ahead: ['p5', 'p7'], ...times })
      assert.deepEqual(before.waiting, ['p2'])
      const late = [newDelivery({ position: 'p9' })]
      const wrongTake = newTaken({ ...claim, before: 'p2', deliveries: late })
      const wrongSave = newSaved({ ...claim, done: ['p2'], pause: 'x' })
      for (const [owner, members] of [
        ['two', claim],
        ['one', { ...claim, epoch: 0 }],
        ['one', { ...claim, id: 'whk_0' }],
      ] as const) {
        const take = { ...wrongTake, ...members }
        const save = { ...wrongSave, ...members }
        assert.equal(await receivers.take(owner, take), false)
        assert.equal(await receivers.save(owner, save), false)
      }
      assert.deepEqual(await readAll(), before)
    })

    it('takes from the position where the receiver is, and from no other', async () => {
      const claim = await addAndClaim()
      const deliveries = [newDelivery(), newDelivery({ position: 'p2' })]
      const first = newTaken({ ...claim, before: 'start', position: 'p2', deliveries })
      assert.equal(await receivers.take('one', first), true)
      await receivers.save('one', newSaved({ ...claim, done: ['p1'] }))
      const taken = await readAll()
      // Again, as after an answer that was lost; then less of it, and nothing but a position.
      for (const late of [
        first,
        { ...first, position: 'p1', deliveries: deliveries.slice(0, 1) },
        { ...first, position: 'p9', deliveries: [] },
        { ...first, gap: 'a gap' },
      ]) {
        assert.equal(await receivers.take('one', late), false)
        assert.deepEqual(await readAll(), taken)
      }
      const next = newTaken({ ...claim, before: 'p2', position: 'p3' })
      assert.equal(await receivers.take('one', next), true)
      assert.equal((await readAll()).progress.position, 'p3')
    })

    it('pauses a receiver with a save, and reports a gap with a take', async () => {
      const claim = await addAndClaim()
      const before = await receivers.revision()
      await receivers.take('one', newTaken({ ...claim, gap: 'some are lost' }))
      await receivers.take('one', newTaken(claim))
      const [active] = await receivers.list()
      assert.deepEqual([active?.state, active?.reason], ['active', 'some are lost'])
      await receivers.save('one', newSaved({ ...claim, pause: 'gone' }))
      const [paused] = await receivers.list()
      assert.deepEqual([paused?.state, paused?.reason], ['paused', 'gone'])
      assert.notEqual(await receivers.revision(), before)
    })

    it('keeps deliveries in the order of the journal, with their bodies', async () => {
      const claim = await addAndClaim()
      // Numbers in base 36: the order of the texts is another one.
      const positions = ['9-1', 'a-z', 'a-10', 'z-1', '10-1', 'zz-1', '100-1'].map(toPosition)
      const toNew = (position: string, index: number) =>
        newDelivery({ position, plantId: largest - BigInt(index), body: `{"name":"${index} \\"}` })
      const deliveries = positions.map(toNew)
      const taken = newTaken({ ...claim, deliveries: deliveries.toReversed() })
      assert.equal(await receivers.take('one', taken), true)
      const found = await receivers.listDeliveries('whk_1', 'waiting')
      const kept = deliveries.map(({ position, type, at, plantId, body }) => ({
        ...{ position, type, at, plantId, attempts: 0, dueAt: at },
        ...{ lastStatus: undefined, lastError: undefined, body },
      }))
      assert.deepEqual(found, kept)
      assert.deepEqual(await receivers.listDeliveries('whk_1', 'waiting', 2), found.slice(0, 2))
      assert.deepEqual(await receivers.listBacklogs(), [
        { id: 'whk_1', changes: 7, position: positions[0], at: 5 },
      ])
      await receivers.remove('whk_1')
      assert.deepEqual(await receivers.listDeliveries('whk_1', 'waiting'), [])
      assert.deepEqual(await receivers.listBacklogs(), [])
    })

    it('deletes what has arrived, and notes how the others failed', async () => {
      const claim = await addAndClaim()
      const deliveries = ['p1', 'p2', 'p3', 'p4'].map((position) => newDelivery({ position }))
      await receivers.take('one', newTaken({ ...claim, deliveries }))
      const failed = [
        { position: 'p2', attempts: 2, dueAt: 99, lastStatus: undefined, lastError: 'a "\\" b' },
        { position: 'p4', attempts: 11, dueAt: undefined, lastStatus: 500, lastError: 'x' },
        // Forgotten meanwhile, or never there.
        { position: 'p9', attempts: 1, dueAt: 5, lastStatus: 500, lastError: 'x' },
      ]
      const saved = newSaved({ ...claim, done: ['p1', 'p8'], failed })
      assert.equal(await receivers.save('one', saved), true)
      const waiting = await receivers.listDeliveries('whk_1', 'waiting')
      assert.deepEqual(
        waiting.map(({ position, attempts }) => [position, attempts]),
        [
          ['p2', 2],
          ['p3', 0],
        ],
      )
      const { type, at, plantId, body, ...state } = waiting[0] ?? assert.fail()
      assert.deepEqual(state, failed[0])
      const [given] = await receivers.listDeliveries('whk_1', 'failed')
      assert.deepEqual([given?.position, given?.attempts], ['p4', 11])
    })

    it('leaves a delivery that is there as it is when it is taken again', async () => {
      const claim = await addAndClaim()
      const taken = newTaken({ ...claim, deliveries: [newDelivery()] })
      await receivers.take('one', taken)
      const failed = [newDelivery({ attempts: 3, dueAt: 77 })]
      await receivers.save('one', newSaved({ ...claim, failed }))
      await receivers.take('one', taken)
      assert.deepEqual(await readAttempts(), [[3, 77]])
    })

    it('keeps failures apart until they are retried, and forgets the oldest', async () => {
      const claim = await addAndClaim()
      const deliveries = Array.from({ length: maxFailures + 2 }, (_, index) =>
        newDelivery({ position: toPosition(`${(index + 1).toString(36)}-1`) }),
      )
      await receivers.take('one', newTaken({ ...claim, deliveries }))
      const failed = deliveries.slice(1).map((one) => ({ ...one, attempts: 11, dueAt: undefined }))
      await receivers.save('one', newSaved({ ...claim, failed }))
      const found = await receivers.listDeliveries('whk_1', 'failed')
      assert.equal(found.length, maxFailures)
      assert.equal(found[0]?.position, deliveries[2]?.position)
      assert.equal((await receivers.listDeliveries('whk_1', 'waiting')).length, 1)
      const before = await receivers.revision()
      assert.equal(await receivers.retryFailures('whk_1', 77), maxFailures)
      assert.notEqual(await receivers.revision(), before)
      assert.deepEqual((await readAttempts())[1], [0, 77])
      assert.equal(await receivers.retryFailures('whk_1', 77), 0)
    })

    it('adds a delivery by hand, once for each position, to a receiver that is there', async () => {
      await receivers.add(newReceiver())
      for (const state of [{ dueAt: undefined }, { attempts: 0, dueAt: 5 }]) {
        assert.equal(await receivers.addDelivery('whk_1', newDelivery(state)), 'added')
      }
      assert.deepEqual(await readAttempts(), [[0, 5]])
      await receivers.remove('whk_1')
      const before = await receivers.revision()
      assert.equal(await receivers.addDelivery('whk_1', newDelivery()), 'unknown')
      assert.equal(await receivers.revision(), before)
      assert.deepEqual(await receivers.listDeliveries('whk_1', 'waiting'), [])
    })
  })
}
