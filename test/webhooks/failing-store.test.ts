import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver } from './test-receiver.ts'
import { add, createMany, find, openStores, openTestSender, start } from './test-sender.ts'

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

    it('asks for the body of a change again, but not at once', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      await add(store, receiver.url)
      let isAway = true
      let failures = 0
      const findBody: Store['receivers']['findBody'] = async (...asked) => {
        if (!isAway) return store.receivers.findBody(...asked)
        failures++
        throw new Error('a failed read')
      }
      start({ ...store, receivers: { ...store.receivers, findBody } }, { waitingBytes: 0 })
      await store.createPlant({ id: 1n, name: 'x' })
      await waitUntil(() => failures > 0, 'the body is asked for')
      for (let turn = 0; turn < 1_000; turn++) await new Promise(setImmediate)
      assert.ok(failures < 50, String(failures))
      isAway = false
      await receiver.waitFor(1)
    })
  })
}
