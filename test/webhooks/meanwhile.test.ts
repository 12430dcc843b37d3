import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../src/store/store.ts'
import { readPage } from '../store/journal-pages.ts'
import { engines } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { watch } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver, type TestAnswer } from './test-receiver.ts'
import { add, countLists, createMany, find, openStores, start } from './test-sender.ts'

const longMs = 600_000

for (const engine of engines) {
  describe(`a sender at work on ${engine.name}`, () => {
    it('misses no change that is made while a page is read', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      await add(store, receiver.url)
      let announce = () => {}
      let nextId = 1n
      start({
        ...store,
        async readJournal(...asked) {
          const page = await store.readJournal(...asked)
          if (nextId <= 3n) {
            await store.createPlant({ id: nextId++, name: 'x' })
            announce()
            // Until the sender has been told.
            await sleep(30)
          }
          return page
        },
        // A store looks again by itself, later. Here each change is announced once.
        watchJournal(onChange) {
          announce = onChange
          return () => {}
        },
      })
      await receiver.waitFor(3)
    })

    it('sends a change once that is on its way when the journal is read', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      for (const plant of [1n, 2n]) await store.createPlant({ id: plant, name: 'x' })
      const [, event] = (await readPage(store)).events
      assert.ok(event)
      const { position, type, at, plantJson: body } = event
      const unsent = { attempts: 0, lastStatus: undefined, lastError: undefined }
      const delivery = { ...unsent, position, type, at, plantId: 2n, dueAt: at, body }
      await store.receivers.addDelivery(id, delivery)
      const read = Promise.withResolvers<void>()
      releaseAfterTest(() => read.resolve())
      receiver.answer = async ({ plantId }) => {
        if (plantId === '1') read.resolve()
        await read.promise
        return 200
      }
      const sender = start(store)
      await receiver.waitFor(2)
      await createMany(store, 3n, 1)
      await receiver.waitFor(3)
      await sender.close()
      assert.equal(receiver.received.length, 3)
    })

    it('retries a change when it is due, though an operator changes something before', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id, secrets } = await add(store, receiver.url)
      receiver.answer = () => 500
      const counted = countLists(store)
      start(counted.store, { retryDelaysMs: [2_000] })
      await store.createPlant({ id: 1n, name: 'x' })
      await waitUntil(async () => {
        const [waiting] = await store.receivers.listDeliveries(id, 'waiting')
        return waiting?.attempts === 1
      }, 'the first attempt has failed')
      receiver.answer = () => 200
      for (let change = 0; change < 20; change++) {
        const before = counted.counts.deliveries
        await store.receivers.change(id, { kind: 'set secrets', secrets })
        await waitUntil(() => counted.counts.deliveries > before, 'the deliveries are read again')
      }
      await receiver.waitFor(1)
    })

    it('gives a receiver all of its patience again after an operator has paused it', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      const resumed = Promise.withResolvers<void>()
      releaseAfterTest(() => resumed.resolve())
      receiver.answer = async ({ plantId }) => {
        if (plantId === '2') await resumed.promise
        return 500
      }
      const { store: counted, counts } = countLists(store)
      start(counted, { retryDelaysMs: [longMs], patienceMs: longMs })
      await createMany(store, 1n, 2)
      const progress = async () => (await find(store, id)).progress
      await waitUntil(async () => (await progress()).failingSince !== undefined, 'one has failed')
      const before = counts.receivers
      await store.receivers.change(id, { kind: 'pause', reason: 'for a test' })
      await waitUntil(() => counts.receivers > before, 'the sender knows of it')
      await store.receivers.change(id, { kind: 'resume' })
      const { lastFailureAt } = await progress()
      resumed.resolve()
      const isSaved = async () => (await progress()).lastFailureAt !== lastFailureAt
      await waitUntil(isSaved, 'the last failure is saved')
      assert.equal((await progress()).failingSince, undefined)
    })

    it('delivers again at once to a receiver that is resumed before its last request ends', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      const resumed = Promise.withResolvers<TestAnswer>()
      releaseAfterTest(() => resumed.resolve(200))
      receiver.answer = () => resumed.promise
      const { store: counted, counts } = countLists(store)
      start(counted, { leaseMs: longMs, renewMs: longMs })
      await store.createPlant({ id: 1n, name: 'in flight' })
      await waitUntil(() => receiver.received.length === 1, 'it is in flight')
      for (const kind of ['pause', 'resume'] as const) {
        const before = counts.receivers
        await store.receivers.change(id, { kind, reason: 'for a test' })
        await waitUntil(() => counts.receivers > before, 'the sender knows of it')
      }
      resumed.resolve(200)
      await store.createPlant({ id: 2n, name: 'after it' })
      await receiver.waitFor(2)
    })

    it('delivers again to a receiver that is resumed before its pause is noticed', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      const resumed = Promise.withResolvers<void>()
      releaseAfterTest(() => resumed.resolve())
      let hasBegun = false
      const receivers: Store['receivers'] = {
        ...store.receivers,
        async revision() {
          if (hasBegun) await resumed.promise
          return store.receivers.revision()
        },
      }
      start({ ...store, receivers }, { leaseMs: longMs })
      receiver.answer = () => {
        hasBegun = true
        return 410
      }
      await store.createPlant({ id: 1n, name: 'x' })
      await waitUntil(async () => (await find(store, id)).state === 'paused', 'it is paused')
      receiver.answer = () => 200
      await store.receivers.change(id, { kind: 'resume' })
      resumed.resolve()
      await receiver.waitFor(1)
    })

    it('sends nothing to a receiver that is removed while changes are taken for it', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      const taking = Promise.withResolvers<void>()
      const removed = Promise.withResolvers<void>()
      releaseAfterTest(() => removed.resolve())
      const watched = watch(store)
      start({
        ...watched.store,
        receivers: {
          ...store.receivers,
          async take(...asked) {
            const isKept = await store.receivers.take(...asked)
            taking.resolve()
            await removed.promise
            return isKept
          },
        },
      })
      await store.createPlant({ id: 1n, name: 'taken' })
      await taking.promise
      await store.receivers.remove(id)
      await waitUntil(() => watched.watchers() === 0, 'the receiver is given up')
      removed.resolve()
      await add(store, receiver.url)
      await store.createPlant({ id: 2n, name: 'kept' })
      await receiver.waitFor(1)
      assert.equal(JSON.parse(receiver.received[0]?.body ?? '').name, 'kept')
    })
  })
}
