import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { findTrimTime } from '../../src/journal/trim.ts'
import { readPage } from '../store/journal-pages.ts'
import { engines } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver, type TestReceiver } from './test-receiver.ts'
import { add, createMany, prepare, start } from './test-sender.ts'

const hourMs = 60 * 60 * 1000
const dayMs = 24 * hourMs

for (const engine of engines) {
  describe(`the bounds of the sender on ${engine.name}`, () => {
    it('let few changes wait for each of several receivers, and all of them arrive', async () => {
      const store = await engine.open(await engine.newUrl())
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

    it('read the journal for at most eight receivers at a time', async () => {
      const store = await engine.open(await engine.newUrl())
      for (let id = 0n; id < 20n; id++) {
        await add(store, 'http://127.0.0.1:1/')
        await createMany(store, id, 1)
      }
      const gate = Promise.withResolvers<void>()
      let reads = 0
      start({
        ...store,
        async readJournal(...asked) {
          reads++
          await gate.promise
          return store.readJournal(...asked)
        },
      })
      releaseAfterTest(gate.resolve)
      await waitUntil(() => reads >= 8, 'eight are read for')
      for (let turn = 0; turn < 100; turn++) await nextTurn()
      assert.equal(reads, 8)
    })

    it('read on where more deliveries wait in the store than in memory', async () => {
      const { store, receiver, id } = await prepare(engine)
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

    it('trim the journal by age, or three days later what an active receiver still needs', async () => {
      const store = await engine.open(await engine.newUrl())
      const now = Date.now()
      await store.createPlant({ id: 1n, name: 'first' })
      const { id, progress } = await add(store, 'http://x/')
      // It has everything.
      assert.equal(await findTrimTime(store, hourMs, now), now - hourMs)
      for (const id of [2n, 3n]) await store.createPlant({ id, name: 'x' })
      const { at = 0 } = (await readPage(store)).events[1] ?? {}
      // Seen from later, it still needs the second.
      assert.equal(await findTrimTime(store, hourMs, now + hourMs), Math.min(at, now))
      assert.equal(await findTrimTime(store, hourMs, now + dayMs), at)
      assert.equal(await findTrimTime(store, hourMs, now + 5 * dayMs), now + 2 * dayMs - hourMs)
      // And it can read on from its own position.
      while (!(await store.trimJournal(at)));
      assert.notEqual(await store.readJournal(progress.position, 1), 'gone')
      await store.receivers.change(id, { kind: 'pause', reason: 'x' })
      assert.equal(await findTrimTime(store, hourMs, now + dayMs), now + dayMs - hourMs)
    })
  })
}

/** Holds back every answer of a receiver. */
function hold(receiver: TestReceiver): PromiseWithResolvers<number> {
  const gate = Promise.withResolvers<number>()
  receiver.answer = () => gate.promise
  return gate
}
