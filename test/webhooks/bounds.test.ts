import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Store } from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'
import { watch } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver, type TestReceiver } from './test-receiver.ts'
import { add, createMany, openStores, start } from './test-sender.ts'

const large = 'x'.repeat(100_000)
const anyVersion = { match: undefined, noneMatch: undefined }

for (const engine of engines) {
  describe(`the bounds of the sender on ${engine.name}`, () => {
    it('let few bytes wait for a receiver, and all of them arrive', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      const gate = hold(receiver)
      start(store, { keptBytes: 250_000 })
      for (let plant = 1n; plant <= 12n; plant++)
        await store.createPlant({ id: plant, name: large })
      await waitUntil(() => receiver.received.length > 0, 'one is in flight')
      const witness = await openTestReceiver()
      await add(store, witness.url)
      await store.createPlant({ id: 99n, name: 'for the witness' })
      await witness.waitFor(1)
      const waiting = await store.receivers.listDeliveries(id, 'waiting')
      assert.ok(waiting.length <= 3, String(waiting.length))
      gate.resolve(200)
      await receiver.waitFor(13)
    })

    it('let few bytes be in flight over all receivers, and hold up no small change', async () => {
      const { store } = await openStores(engine)
      const receivers = await Promise.all(Array.from({ length: 4 }, () => openTestReceiver()))
      const gates = receivers.map(hold)
      for (const { url } of receivers) await add(store, url)
      const settings = { inFlightBytes: 250_000, waitingBytes: 0 }
      start(store, settings)
      for (let plant = 1n; plant <= 4n; plant++) await store.createPlant({ id: plant, name: large })
      const inFlight = () => receivers.reduce((sum, { received }) => sum + received.length, 0)
      await waitUntil(() => inFlight() >= 2, 'two are in flight')
      const small = await openTestReceiver()
      await add(store, small.url, { types: ['plant.replaced'] })
      const replaced = () => store.replacePlant({ id: 1n, name: 'small' }, anyVersion)
      await waitUntil(async () => {
        await replaced()
        return small.taken().length > 0
      }, 'a small change arrives')
      assert.equal(inFlight(), 2)
      for (const gate of gates) gate.resolve(200)
      for (const receiver of receivers) await receiver.waitFor(4)
      assert.deepEqual(
        receivers.map(({ received }) => received.length),
        [4, 4, 4, 4],
      )
    })

    it('have room again after a receiver was paused while changes were taken for it', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      const taking = Promise.withResolvers<void>()
      const taken = Promise.withResolvers<void>()
      const watched = watch(store)
      let bodiesRead = 0
      let lists = 0
      start(
        {
          ...watched.store,
          receivers: {
            ...store.receivers,
            async take(...asked) {
              const isKept = await store.receivers.take(...asked)
              taking.resolve()
              await taken.promise
              return isKept
            },
            async list() {
              const listed = await store.receivers.list()
              lists++
              return listed
            },
            findBody(...asked) {
              bodiesRead++
              return store.receivers.findBody(...asked)
            },
          },
        },
        { waitingBytes: 40 },
      )
      await store.createPlant({ id: 1n, name: 'taken' })
      await taking.promise
      const before = lists
      await store.receivers.change(id, { kind: 'pause', reason: 'for a test' })
      await waitUntil(() => lists > before, 'the sender knows of it')
      taken.resolve()
      await waitUntil(() => watched.watchers() === 0, 'the receiver is given up')
      await store.receivers.change(id, { kind: 'resume' })
      await receiver.waitFor(1)
      await store.createPlant({ id: 2n, name: 'kept' })
      await receiver.waitFor(2)
      assert.equal(bodiesRead, 1)
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
