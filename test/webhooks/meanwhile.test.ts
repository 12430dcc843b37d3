import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import type { Store } from '../../src/store/store.ts'
import { newSecret, rotationMs } from '../../src/webhooks/receiver.ts'
import { readPage } from '../store/journal-pages.ts'
import { engines } from '../support/engines.ts'
import { newDelivery } from '../support/receiver-record.ts'
import { releaseAfterTest } from '../support/release.ts'
import { watch } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { type TestAnswer, verify } from './test-receiver.ts'
import {
  add,
  announceByHand,
  countReads,
  createMany,
  find,
  openTestSender,
  prepare,
  replaceMethods,
  start,
} from './test-sender.ts'

const longMs = 600_000

for (const engine of engines) {
  describe(`a sender at work on ${engine.name}`, () => {
    it('misses no change that is made while a page is read', async () => {
      const { store, receiver } = await prepare(engine)
      const { store: announced, announce } = announceByHand(store)
      let nextId = 1n
      start({
        ...announced,
        async readJournal(...asked) {
          const page = await store.readJournal(...asked)
          if (nextId <= 3n) {
            await store.createPlant({ id: nextId++, name: 'x' })
            announce()?.()
            // Until the sender has been told.
            await sleep(30)
          }
          return page
        },
      })
      await receiver.waitFor(3)
    })

    it('sends a change once that is on its way when the journal is read', async () => {
      const { store, receiver, id } = await prepare(engine)
      for (const plant of [1n, 2n]) await store.createPlant({ id: plant, name: 'x' })
      const [, event] = (await readPage(store)).events
      assert.ok(event)
      const { position, type, at, plantJson: body } = event
      const place = { position, type, at, plantId: 2n, body }
      await store.receivers.addDelivery(id, newDelivery({ ...place, attempts: 0, dueAt: at }))
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

    it('retries a change when it is due, though an operator rotates the secret before', async () => {
      const { store, receiver, id, secrets } = await prepare(engine)
      receiver.answer = () => 500
      const counted = countReads(store)
      start(counted.store, { retryDelaysMs: [2_000] })
      await store.createPlant({ id: 1n, name: 'x' })
      await waitUntil(async () => {
        const [waiting] = await store.receivers.listDeliveries(id, 'waiting')
        return waiting?.attempts === 1
      }, 'the first attempt has failed')
      receiver.answer = () => 200
      const previousUntil = Date.now() + rotationMs
      const rotated = { current: newSecret(), previous: secrets.current, previousUntil }
      for (let change = 0; change < 20; change++) {
        const before = counted.counts.deliveries
        await store.receivers.change(id, { kind: 'set secrets', secrets: rotated })
        await waitUntil(() => counted.counts.deliveries > before, 'the deliveries are read again')
      }
      await receiver.waitFor(1)
      const [, retried = assert.fail()] = receiver.received
      for (const secret of [rotated.current, rotated.previous]) verify(retried, secret)
    })

    it('gives a receiver all of its patience again after an operator has paused it', async () => {
      const { store, receiver, id } = await prepare(engine)
      const resumed = Promise.withResolvers<void>()
      releaseAfterTest(() => resumed.resolve())
      receiver.answer = async ({ plantId }) => {
        if (plantId === '2') await resumed.promise
        return 500
      }
      const { store: counted, counts } = countReads(store)
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
      const { store, receiver, id } = await prepare(engine)
      const resumed = Promise.withResolvers<TestAnswer>()
      releaseAfterTest(() => resumed.resolve(200))
      receiver.answer = () => resumed.promise
      const { store: counted, counts } = countReads(store)
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

    it('sends nothing to a receiver that is removed while changes are taken for it', async () => {
      const { store, receiver, id } = await prepare(engine)
      const taking = Promise.withResolvers<void>()
      const removed = Promise.withResolvers<void>()
      releaseAfterTest(() => removed.resolve())
      const watched = watch(store)
      const take: Store['receivers']['take'] = async (...asked) => {
        const isKept = await store.receivers.take(...asked)
        taking.resolve()
        await removed.promise
        return isKept
      }
      start(replaceMethods(watched.store, { take }))
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

    it('logs once that a receiver is failing, whatever it takes meanwhile, and once that it works again', async () => {
      const { store, receiver, id } = await prepare(engine)
      const lines: Record<string, unknown>[] = []
      const write = (line: string) => void lines.push(JSON.parse(line))
      const logger = pino({ level: 'info', base: null, timestamp: false }, { write })
      let isUp = false
      receiver.answer = ({ plantId }) => (isUp || BigInt(plantId) > 3n ? 200 : 503)
      const sender = openTestSender(store, { retryDelaysMs: Array(1_000).fill(20) }, logger)
      releaseAfterTest(sender.close)
      await createMany(store, 1n, 3)
      const attempts = () => receiver.received.filter(({ plantId }) => plantId === '3').length
      await waitUntil(() => attempts() > 1, 'a change is tried again')
      await createMany(store, 4n, 20)
      await receiver.waitFor(20)
      const before = attempts()
      await waitUntil(() => attempts() > before + 1, 'it is tried again')
      assert.deepEqual(lines, [
        {
          level: 40,
          receiver: id,
          status: 503,
          error: 'answered 503',
          msg: 'webhooks: the receiver is failing; its changes are retried',
        },
      ])
      isUp = true
      await waitUntil(() => lines.length > 1, 'another line')
      assert.deepEqual(lines.slice(1), [
        { level: 30, receiver: id, msg: 'webhooks: the receiver works again' },
      ])
      assert.equal(receiver.taken().length, 23)
      await store.createPlant({ id: 24n, name: 'x' })
      await receiver.waitFor(24)
      await sender.close()
      assert.equal(lines.length, 2)
    })
  })
}
