import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Store } from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver, type TestReceiver } from './test-receiver.ts'
import { add, createMany, openStores, start } from './test-sender.ts'

for (const engine of engines) {
  describe(`the bounds of the sender on ${engine.name}`, () => {
    it('let few changes wait for each of several receivers, and all of them arrive', async () => {
      const { store } = await openStores(engine)
      const receivers = [await openTestReceiver(), await openTestReceiver()]
      const gates = receivers.map(hold)
      const ids: string[] = []
      for (const { url } of receivers) ids.push((await add(store, url)).id)
      start(store, { keptDeliveries: 10, keptInAll: 8 })
      await createMany(store, 1n, 1)
      const areOpen = () => receivers.every(({ received }) => received.length > 0)
      await waitUntil(areOpen, 'the first change is in flight to both')
      await createMany(store, 2n, 12)
      const witness = await openTestReceiver()
      await add(store, witness.url)
      await createMany(store, 14n, 1)
      await witness.waitFor(1)
      for (const id of ids) {
        const waiting = await store.receivers.listDeliveries(id, 'waiting')
        assert.ok(waiting.length <= 4, String(waiting.length))
      }
      for (const gate of gates) gate.resolve(200)
      for (const receiver of receivers) await receiver.waitFor(14)
    })

    it('let the store rest while it takes nothing, as on a full disk', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      await add(store, receiver.url)
      let isFull = true
      let refused = 0
      const take: Store['receivers']['take'] = async (...asked) => {
        if (!isFull) return store.receivers.take(...asked)
        refused++
        throw new Error('the disk is full')
      }
      start({ ...store, receivers: { ...store.receivers, take } })
      await store.createPlant({ id: 1n, name: 'x' })
      await waitUntil(() => refused > 0, 'the change is taken')
      for (let turn = 0; turn < 1_000; turn++) await nextTurn()
      assert.ok(refused < 50, String(refused))
      isFull = false
      await receiver.waitFor(1)
    })

    it('read on where more deliveries wait in the store than in memory', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      receiver.answer = () => 500
      const sender = start(store, { keptDeliveries: 10, retryDelaysMs: [] })
      await createMany(store, 1n, 50)
      const failures = async () => (await store.receivers.listDeliveries(id, 'failed')).length
      await waitUntil(async () => (await failures()) === 50, 'all are given up')
      receiver.answer = () => 200
      const before = receiver.received.length
      assert.equal(await store.receivers.retryFailures(id, Date.now()), 50)
      await receiver.waitFor(50)
      await createMany(store, 51n, 5)
      await receiver.waitFor(55)
      await sender.close()
      assert.equal(receiver.received.length, before + 55)
      assert.deepEqual(await store.receivers.listBacklogs(), [])
    })
  })
}

/** Holds back every answer of a receiver. */
function hold(receiver: TestReceiver): PromiseWithResolvers<number> {
  const gate = Promise.withResolvers<number>()
  receiver.answer = () => gate.promise
  return gate
}
