import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Store } from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import {
  announceByHand,
  createMany,
  openTestSender,
  prepare,
  replaceMethods,
  start,
  waitForEnd,
  waitForPause,
} from './test-sender.ts'

type Method = 'list' | 'listDeliveries' | 'save' | 'take'

/** The store, of whose methods for receivers one fails once, when that is due. */
function failOnce(store: Store, name: Method, isDue = () => true): Store {
  let hasToFail = true
  const method = async (...asked: never[]) => {
    if (!hasToFail || !isDue())
      return (store.receivers[name] as (...all: never[]) => unknown)(...asked)
    hasToFail = false
    throw new Error(`a failed ${name}`)
  }
  return replaceMethods(store, { [name]: method })
}

for (const engine of engines) {
  describe(`a sender whose store fails once, on ${engine.name}`, () => {
    for (const name of ['list', 'save', 'take'] as const) {
      it(`delivers in order after a failed ${name}, though nothing announces a change again`, async () => {
        const { store, receiver } = await prepare(engine, {
          types: ['plant.created', 'plant.deleted'],
        })
        const { store: announced, announce } = announceByHand(failOnce(store, name))
        start(announced)
        await waitUntil(() => announce() !== undefined, 'the journal is watched')
        await store.createPlant({ id: 1n, name: 'x' })
        await store.deletePlant(1n, {})
        announce()?.()
        await receiver.waitFor(2)
        assert.equal(receiver.received.at(-1)?.event, 'plant.deleted')
      })
    }

    it('saves its position behind unwanted changes after a failed take', async () => {
      const { store, id } = await prepare(engine, { types: ['plant.deleted'] })
      // A renewal of the lease would wake the sender as well.
      start(failOnce(store, 'take'), { renewMs: 600_000, leaseMs: 600_000 })
      await store.createPlant({ id: 1n, name: 'unwanted' })
      await waitForEnd(store, id)
    })

    it('pauses a receiver that answers 410, though the pause is not saved at first', async () => {
      const { store, receiver, id } = await prepare(engine)
      receiver.answer = () => 410
      start(failOnce(store, 'save'))
      await store.createPlant({ id: 1n, name: 'x' })
      await waitForPause(store, id)
    })

    it('pauses a receiver that answers 410 while a save of it fails', async () => {
      const { store, receiver, id } = await prepare(engine)
      const saving = Promise.withResolvers<void>()
      receiver.answer = async ({ plantId }) => {
        if (plantId === '1') return 200
        await saving.promise
        return 410
      }
      const refused = Promise.withResolvers<void>()
      const warn = (_: object, words: string) => words.includes('paused') && refused.resolve()
      let saves = 0
      const save: Store['receivers']['save'] = async (...saved) => {
        if (saves++ > 0) return store.receivers.save(...saved)
        saving.resolve()
        await refused.promise
        throw new Error('a failed save')
      }
      const logger = { debug() {}, info() {}, warn } as never
      releaseAfterTest(openTestSender(replaceMethods(store, { save }), {}, logger).close)
      await createMany(store, 1n, 2)
      await waitForPause(store, id)
    })

    it('sends a failure again when asked to, though its deliveries cannot be read at first', async () => {
      const { store, receiver, id } = await prepare(engine)
      receiver.answer = () => 500
      let isAsked = false
      start(
        failOnce(store, 'listDeliveries', () => isAsked),
        { retryDelaysMs: [] },
      )
      await store.createPlant({ id: 1n, name: 'x' })
      const failures = () => store.receivers.listDeliveries(id, 'failed')
      await waitUntil(async () => (await failures()).length === 1, 'it is given up')
      receiver.answer = () => 200
      isAsked = true
      await store.receivers.retryFailures(id, Date.now())
      await receiver.waitFor(1)
    })

    it('lets the store rest while it takes nothing, as on a full disk', async () => {
      const { store, receiver } = await prepare(engine)
      let isFull = true
      let refused = 0
      const take: Store['receivers']['take'] = async (...asked) => {
        if (!isFull) return store.receivers.take(...asked)
        refused++
        throw new Error('the disk is full')
      }
      start(replaceMethods(store, { take }))
      await store.createPlant({ id: 1n, name: 'x' })
      await waitUntil(() => refused > 0, 'the change is taken')
      for (let turn = 0; turn < 1_000; turn++) await nextTurn()
      assert.ok(refused < 50, String(refused))
      isFull = false
      await receiver.waitFor(1)
    })
  })
}
