import assert from 'node:assert/strict'
import { before, describe, it, type TestContext } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { defaultSettings } from '../../src/webhooks/sender.ts'
import { stopClock } from '../support/clock.ts'
import { engines } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { countReads, createMany, prepare, replaceMethods, start } from './test-sender.ts'

const longLeaseMs = 600_000
const settings = { leaseMs: longLeaseMs, renewMs: longLeaseMs / 2 }

/** Lets a sender claim its leases once: its next claim waits for `renew`. */
function holdRenewals(store: Store) {
  const renewal = Promise.withResolvers<void>()
  releaseAfterTest(() => renewal.resolve())
  let claims = 0
  const claim: Store['receivers']['claim'] = async (...asked) => {
    if (claims++ > 0) await renewal.promise
    return store.receivers.claim(...asked)
  }
  return { store: replaceMethods(store, { claim }), claims: () => claims, renew: renewal.resolve }
}

for (const engine of engines) {
  describe(`the lease of a receiver on ${engine.name}`, () => {
    let store: Store
    before(async () => {
      store = await engine.open(await engine.newUrl())
    })

    it('has one process deliver, and another continue when that one is closed', async () => {
      const url = await engine.newUrl()
      const [store, other] = [await engine.open(url), await engine.open(url)]
      const { receiver } = await prepare(store)
      const long = { leaseMs: longLeaseMs }
      const [one, two] = [start(store, long), start(other, long)]
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
        const clock = stopClock(test)
        const { receiver } = await prepare(store)
        const { store: counted, counts } = countReads(store)
        const held = holdRenewals(counted)
        start(held.store, settings)
        await store.createPlant({ id: plant, name: 'in time' })
        await receiver.waitFor(1)
        clock.advance(monotonicMs)
        clock.stepWall(wallMs)
        const { pages } = counts
        await store.createPlant({ id: plant + 1n, name: 'late' })
        await waitUntil(() => counts.pages > pages, 'the journal is read')
        const isSent = () => receiver.received.length > 1
        await waitUntil(() => isSent() || held.claims() === 2, 'the lease is to be renewed')
        await receiver.answerOther()
        assert.ok(!isSent())
        held.renew()
        await receiver.waitFor(2)
      })
    }

    it('is counted from before the store is asked, however late its answer comes', async (test) => {
      const clock = stopClock(test)
      const { receiver } = await prepare(store)
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
      start(replaceMethods(store, { claim }), settings)
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
      const clock = stopClock(test)
      const { receiver, id } = await prepare(store)
      const late = Promise.withResolvers<number>()
      receiver.answer = () => (receiver.received.length === 1 ? late.promise : 200)
      const held = holdRenewals(store)
      start(held.store, { ...settings, retryDelaysMs: [longLeaseMs] })
      await store.createPlant({ id: plant, name: `${status} after the lease` })
      await waitUntil(() => receiver.received.length === 1, 'it is on its way')
      clock.advance(longLeaseMs)
      await waitUntil(() => held.claims() === 2, 'the lease is to be renewed')
      late.resolve(status)
      await receiver.answerOther()
      held.renew()
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
  })
}

describe('the usual times of the sender', () => {
  it('let an operator wait for less than 1 s, and another process take over within 10 s', () => {
    const { pollMs, leaseMs, renewMs } = defaultSettings
    assert.ok(2 * pollMs < 1_000)
    assert.ok(leaseMs + renewMs + pollMs < 10_000)
    assert.ok(3 * renewMs <= leaseMs, 'a lease is renewed three times before it ends')
  })
})
