import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { webhookTypes } from '../../src/contract/webhooks.ts'
import { unconfirmed } from '../../src/store/failures.ts'
import type { Store } from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver } from './test-receiver.ts'
import {
  add,
  countLists,
  createMany,
  find,
  openStores,
  openTestSender,
  start,
} from './test-sender.ts'

for (const engine of engines) {
  describe(`a sender whose store fails once, on ${engine.name}`, () => {
    it('takes a change after a failed take, though nobody announces it again', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      await add(store, receiver.url)
      let announce: (() => void) | undefined
      let takes = 0
      start({
        ...store,
        // A store looks again by itself, later. Here each change is announced once.
        watchJournal(onChange) {
          announce = onChange
          return () => {}
        },
        receivers: {
          ...store.receivers,
          async take(...taken) {
            if (takes++ === 0) throw new Error('a failed take')
            return store.receivers.take(...taken)
          },
        },
      })
      await waitUntil(() => announce !== undefined, 'the journal is watched')
      await store.createPlant({ id: 1n, name: 'x' })
      announce?.()
      await receiver.waitFor(1)
    })

    it('sends each change of a take once and in order, though its outcome is unknown', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id, secrets } = await add(store, receiver.url, { types: [...webhookTypes] })
      const again = Promise.withResolvers<void>()
      releaseAfterTest(() => again.resolve())
      receiver.answer = async ({ plantId }) => {
        if (plantId === '1') await again.promise
        return 200
      }
      const { store: counted, counts } = countLists(store)
      const waits = async () => (await store.receivers.listDeliveries(id, 'waiting')).length
      let takes = 0
      start({
        ...counted,
        // With another session each time, the reader keeps no page.
        journalSession: () => ({}),
        async readJournal(...asked) {
          const page = await store.readJournal(...asked)
          if (takes === 2) await waitUntil(async () => (await waits()) === 1, 'it has arrived')
          return page
        },
        receivers: {
          ...counted.receivers,
          async take(...asked) {
            const isTaken = await store.receivers.take(...asked)
            if (++takes === 3) again.resolve()
            if (takes !== 2) return isTaken
            // The deliveries are read from the store before the journal is read again.
            const before = counts.receivers
            await store.receivers.change(id, { kind: 'set secrets', secrets })
            await waitUntil(() => counts.receivers > before, 'the sender knows of the change')
            throw unconfirmed()
          },
        },
      })
      await store.createPlant({ id: 1n, name: 'in flight' })
      await waitUntil(() => receiver.received.length === 1, 'it is in flight')
      await Promise.all([
        store.createPlant({ id: 2n, name: 'first' }),
        store.replacePlant({ id: 2n, name: 'second' }, {}),
      ])
      await again.promise
      await store.replacePlant({ id: 2n, name: 'third' }, {})
      await receiver.waitFor(4)
      const arrived = receiver.received.map(({ body }) => JSON.parse(body).name)
      assert.deepEqual(arrived, ['in flight', 'first', 'second', 'third'])
    })

    it('saves what arrives while a save fails', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      const saving = Promise.withResolvers<void>()
      const failed = Promise.withResolvers<void>()
      let attempts = 0
      receiver.answer = async ({ plantId }) => {
        if (plantId === '1') return 200
        await saving.promise
        return attempts++ === 0 ? 500 : 200
      }
      let saves = 0
      const save: Store['receivers']['save'] = async (...saved) => {
        if (saves++ > 0) return store.receivers.save(...saved)
        saving.resolve()
        await failed.promise
        throw new Error('a failed save')
      }
      const debug = (_: object, words: string) => words.includes('attempt') && failed.resolve()
      const logger = { debug, info() {}, warn() {} } as never
      const failing = { ...store, receivers: { ...store.receivers, save } }
      releaseAfterTest(openTestSender(failing, {}, logger).close)
      await createMany(store, 1n, 2)
      await receiver.waitFor(2)
      await waitUntil(async () => {
        const waiting = await store.receivers.listDeliveries(id, 'waiting')
        return waiting.length === 0
      }, 'nothing waits')
      assert.equal(receiver.received.length, 3)
    })

    it('pauses a receiver that answers 410, though the pause is not saved at first', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      receiver.answer = () => 410
      let saves = 0
      const save: Store['receivers']['save'] = async (...saved) => {
        if (saves++ === 0) throw new Error('a failed save')
        return store.receivers.save(...saved)
      }
      start({ ...store, receivers: { ...store.receivers, save } })
      await store.createPlant({ id: 1n, name: 'x' })
      await waitUntil(async () => (await find(store, id)).state === 'paused', 'it is paused')
    })

    it('applies what an operator has changed, though the receivers cannot be listed at first', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      let lists = 0
      const list: Store['receivers']['list'] = async () => {
        if (lists++ === 0) throw new Error('a failed list')
        return store.receivers.list()
      }
      await add(store, receiver.url)
      start({ ...store, receivers: { ...store.receivers, list } })
      await store.createPlant({ id: 1n, name: 'x' })
      await receiver.waitFor(1)
    })

    it('sends a failure again when asked to, though its deliveries cannot be read at first', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      receiver.answer = () => 500
      let hasToFail = false
      const listDeliveries: Store['receivers']['listDeliveries'] = async (...asked) => {
        if (!hasToFail) return store.receivers.listDeliveries(...asked)
        hasToFail = false
        throw new Error('a failed read')
      }
      const failing = { ...store, receivers: { ...store.receivers, listDeliveries } }
      start(failing, { retryDelaysMs: [] })
      await store.createPlant({ id: 1n, name: 'x' })
      await waitUntil(async () => {
        const failures = await store.receivers.listDeliveries(id, 'failed')
        return failures.length === 1
      }, 'it is given up')
      receiver.answer = () => 200
      hasToFail = true
      await store.receivers.retryFailures(id, Date.now())
      await receiver.waitFor(1)
    })
  })
}
