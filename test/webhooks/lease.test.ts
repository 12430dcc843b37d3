import assert from 'node:assert/strict'
import { before, describe, it, type TestContext } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { defaultSettings } from '../../src/webhooks/settings.ts'
import { stopClock } from '../support/clock.ts'
import { engines } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { watch } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver } from './test-receiver.ts'
import { add, countReads, createMany, openStores, start } from './test-sender.ts'

const longLeaseMs = 600_000

/** Starts a sender whose leases another process can take, and give back. */
function startTakeable(store: Store, others: Partial<Store['receivers']> = {}) {
  let isTaken = false
  const watched = watch(store)
  start({
    ...watched.store,
    receivers: {
      ...store.receivers,
      claim: async (...asked) => (isTaken ? [] : store.receivers.claim(...asked)),
      ...others,
    },
  })
  return {
    /** Waits until nobody tells the sender of the next changes. */
    async take() {
      isTaken = true
      await waitUntil(() => watched.watchers() === 0, 'the receiver is given up')
    },
    giveBack() {
      isTaken = false
    },
  }
}

for (const engine of engines) {
  describe(`the lease of a receiver on ${engine.name}`, () => {
    let stores: { url: string; store: Store }
    before(async () => {
      stores = await openStores(engine)
    })

    it('has one process deliver, and another go on when that one is closed', async () => {
      const { store, url } = stores
      const other = await engine.open(url)
      const receiver = await openTestReceiver()
      await add(store, receiver.url)
      const settings = { leaseMs: longLeaseMs }
      const [one, two] = [start(store, settings), start(other, settings)]
      await createMany(store, 900n, 20)
      await receiver.waitFor(20)
      await createMany(other, 920n, 20)
      await receiver.waitFor(40)
      // Whichever it is that holds the lease, the other one has it in the end.
      await one.close()
      await createMany(other, 940n, 10)
      await receiver.waitFor(50)
      await two.close()
      assert.equal(receiver.received.length, 50)
      assert.equal((await store.receivers.claim('the next', longLeaseMs)).length, 1)
    })

    for (const [when, plant, monotonicMs, wallMs] of [
      ['with its time', 101n, longLeaseMs, 0],
      ['though the wall clock is set back', 103n, longLeaseMs, -2 * longLeaseMs],
      // The monotonic clock stands still meanwhile.
      ['while the machine is suspended', 105n, 0, longLeaseMs],
    ] as const) {
      it(`ends ${when}: nothing is sent until it is renewed`, async (test) => {
        const { store } = stores
        const clock = stopClock(test)
        const receiver = await openTestReceiver()
        await add(store, receiver.url)
        const renewal = Promise.withResolvers<void>()
        let claims = 0
        const counted = countReads(store)
        start(
          {
            ...counted.store,
            receivers: {
              ...store.receivers,
              async claim(...asked) {
                if (claims++ > 0) await renewal.promise
                return store.receivers.claim(...asked)
              },
            },
          },
          { leaseMs: longLeaseMs, renewMs: longLeaseMs / 2 },
        )
        releaseAfterTest(() => renewal.resolve())
        await store.createPlant({ id: plant, name: 'in time' })
        await receiver.waitFor(1)
        clock.advance(monotonicMs)
        clock.stepWall(wallMs)
        const before = counted.reads()
        await store.createPlant({ id: plant + 1n, name: 'late' })
        await waitUntil(() => counted.reads() > before, 'the journal is read')
        const isSent = () => receiver.received.length > 1
        await waitUntil(() => isSent() || claims === 2, 'the lease is to be renewed')
        await receiver.answerOther()
        assert.ok(!isSent())
        renewal.resolve()
        await receiver.waitFor(2)
      })
    }

    it('is counted from before the store is asked, however late its answer comes', async (test) => {
      const { store } = stores
      const clock = stopClock(test)
      const receiver = await openTestReceiver()
      await add(store, receiver.url)
      const answers = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      releaseAfterTest(() => {
        for (const answer of answers) answer.resolve()
      })
      let claims = 0
      const claim: Store['receivers']['claim'] = async (...asked) => {
        const claimed = await store.receivers.claim(...asked)
        await answers[claims++]?.promise
        return claimed
      }
      start(
        { ...store, receivers: { ...store.receivers, claim } },
        { leaseMs: longLeaseMs, renewMs: longLeaseMs / 2 },
      )
      await waitUntil(() => claims === 1, 'the store is asked for the lease')
      clock.advance(longLeaseMs)
      answers[0]?.resolve()
      await store.createPlant({ id: 5n, name: 'not sent with the first lease' })
      const isSent = () => receiver.received.length > 0
      await waitUntil(() => isSent() || claims === 2, 'the lease is to be renewed')
      await receiver.answerOther()
      assert.ok(!isSent())
      answers[1]?.resolve()
      await receiver.waitFor(1)
    })

    /** Sends a new plant that the receiver answers with this status once the lease has run out. */
    async function answerTooLate(test: TestContext, plant: bigint, status: number) {
      const { store } = stores
      const clock = stopClock(test)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      const late = Promise.withResolvers<number>()
      receiver.answer = () => (receiver.received.length === 1 ? late.promise : 200)
      const renewal = Promise.withResolvers<void>()
      releaseAfterTest(() => renewal.resolve())
      let claims = 0
      const claim: Store['receivers']['claim'] = async (...asked) => {
        if (claims++ > 0) await renewal.promise
        return store.receivers.claim(...asked)
      }
      start(
        { ...store, receivers: { ...store.receivers, claim } },
        { leaseMs: longLeaseMs, renewMs: longLeaseMs / 2, retryDelaysMs: [longLeaseMs] },
      )
      await store.createPlant({ id: plant, name: `${status} after the lease` })
      await waitUntil(() => receiver.received.length === 1, 'it is on its way')
      clock.advance(longLeaseMs)
      await waitUntil(() => claims === 2, 'the lease is to be renewed')
      late.resolve(status)
      await receiver.answerOther()
      renewal.resolve()
      await waitUntil(async () => {
        const [waiting] = await store.receivers.listDeliveries(id, 'waiting')
        return waiting === undefined || waiting.attempts > 0
      }, 'it has arrived, or has failed')
      return receiver
    }

    it('judges no failure that comes after its time: the change is sent again at once', async (test) => {
      const receiver = await answerTooLate(test, 6n, 500)
      assert.equal(receiver.taken().length, 1)
    })

    it('counts an acknowledgement that comes after its time: the change is not sent again', async (test) => {
      const receiver = await answerTooLate(test, 7n, 200)
      assert.equal(receiver.received.length, 1)
    })

    it('is lost with what the store says: nothing is sent for a receiver of another process', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      await add(store, receiver.url)
      const lease = startTakeable(store)
      await store.createPlant({ id: 11n, name: 'mine' })
      await receiver.waitFor(1)
      await lease.take()
      lease.giveBack()
      await store.createPlant({ id: 12n, name: 'mine again' })
      await receiver.waitFor(2)
    })

    it('is lost when a save is refused: what was not saved is sent again', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      await add(store, receiver.url)
      let refused = 0
      start({
        ...store,
        receivers: {
          ...store.receivers,
          save: async (...saved) => refused++ > 0 && store.receivers.save(...saved),
        },
      })
      await store.createPlant({ id: 21n, name: 'twice' })
      await waitUntil(() => receiver.received.length === 2, 'the change arrives again')
      assert.equal(new Set(receiver.received.map((one) => one.id)).size, 1)
    })
  })
}

describe('the usual times of the sender', () => {
  const { pollMs, leaseMs, renewMs } = defaultSettings

  it('let an operator wait less than a second', () => assert.ok(2 * pollMs < 1_000))
  it('let another process take over within 10 s', () =>
    assert.ok(leaseMs + renewMs + pollMs < 10_000))
  it('renew a lease three times before it ends', () => assert.ok(3 * renewMs <= leaseMs))
})
