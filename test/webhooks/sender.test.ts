import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { WebhookType } from '../../src/contract/webhooks.ts'
import { boundJournal } from '../../src/journal/bound.ts'
import { findTrimTime } from '../../src/journal/trim.ts'
import type { Store } from '../../src/store/store.ts'
import { newSecret, rotationMs } from '../../src/webhooks/receiver.ts'
import { readPage } from '../store/journal-pages.ts'
import { engines } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { watch } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver, verify } from './test-receiver.ts'
import {
  add,
  countReads,
  createMany,
  find,
  openStores,
  openTestSender,
  start,
} from './test-sender.ts'

const anyVersion = { match: undefined, noneMatch: undefined }
const everyType: WebhookType[] = ['plant.created', 'plant.replaced', 'plant.deleted']

for (const engine of engines) {
  describe(`the sender on ${engine.name}`, () => {
    let stores: { url: string; store: Store }
    before(async () => {
      stores = await openStores(engine)
    })

    it('sends a created plant as it was created, signed, with its digits exact', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      const { secrets } = await add(store, receiver.url)
      start(store)
      const id = 9_007_199_254_740_993n
      await store.createPlant({ id, name: 'Grüne "Palme"\n🌴', tag: '' })
      await store.createPlant({ id: id + 1n, name: 'Aloe' })
      await receiver.waitFor(2)
      const [first, second] = receiver.received.sort((one, other) =>
        one.body < other.body ? -1 : 1,
      )
      assert.equal(first?.body, '{"id":9007199254740993,"name":"Grüne \\"Palme\\"\\n🌴","tag":""}')
      assert.equal(second?.body, '{"id":9007199254740994,"name":"Aloe"}')
      assert.equal(first?.event, 'plant.created')
      assert.equal(first?.headers['content-type'], 'application/json')
      assert.match(first?.id ?? '', /^[A-Za-z0-9_-]{1,64}$/)
      verify(first as never, secrets.current)
      assert.throws(() => verify(first as never, newSecret()))
    })

    it('sends the wanted types only, of one plant in order, never two together', async () => {
      const { store } = stores
      const [all, deletes] = [await openTestReceiver(), await openTestReceiver()]
      await add(store, all.url, { types: everyType })
      await add(store, deletes.url, { types: ['plant.deleted'] })
      start(store)
      const ids = [101n, 102n, 103n]
      for (const id of ids) await store.createPlant({ id, name: 'v0' })
      for (let count = 1; count <= 6; count++) {
        await Promise.all(
          ids.map((id) => store.replacePlant({ id, name: `v${count}` }, anyVersion)),
        )
      }
      for (const id of ids) await store.deletePlant(id, anyVersion)
      await all.waitFor(8 * ids.length)
      await deletes.waitFor(ids.length)
      for (const id of ids) {
        const seen = all.received.filter(({ plantId }) => plantId === String(id))
        assert.deepEqual(
          seen.map(({ event, body }) => [event, JSON.parse(body).name]),
          [
            ['plant.created', 'v0'],
            ...Array.from({ length: 6 }, (_, index) => ['plant.replaced', `v${index + 1}`]),
            ['plant.deleted', 'v6'],
          ],
        )
      }
      assert.deepEqual(all.together, [])
      assert.deepEqual(
        deletes.received.map(({ event, plantId }) => `${event} ${plantId}`).sort(),
        ids.map((id) => `plant.deleted ${id}`),
      )
    })

    it('has at most 16 on their way, and saves its position when they are done', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      const gate = Promise.withResolvers<number>()
      receiver.answer = () => gate.promise
      const witness = await openTestReceiver()
      await add(store, witness.url)
      start(store)
      await createMany(store, 200n, 40)
      await waitUntil(() => receiver.received.length >= 16, '16 requests are on their way')
      // One more would have been sent before these.
      await witness.waitFor(40)
      assert.equal(receiver.received.length, 16)
      gate.resolve(200)
      await receiver.waitFor(40)
      assert.equal(receiver.mostAtOnce, 16)
      await waitUntil(async () => {
        const { progress } = await find(store, id)
        return progress.position === (await store.journalEnd()) && progress.ahead.length === 0
      }, 'the position is saved')
    })

    it('has at most 16 on their way or not saved: a crash would send these twice', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      await add(store, receiver.url)
      const gate = Promise.withResolvers<void>()
      const counted = countReads(store)
      start({
        ...counted.store,
        receivers: {
          ...store.receivers,
          save: (...saved) => gate.promise.then(() => store.receivers.save(...saved)),
        },
      })
      releaseAfterTest(() => gate.resolve())
      await createMany(store, 250n, 20)
      await receiver.waitFor(16)
      // Whatever wakes the sender makes it send all that it may.
      for (let wake = 0; wake < 5; wake++) {
        const before = counted.reads()
        await store.createPlant({ id: 270n + BigInt(wake), name: 'x' })
        await waitUntil(() => counted.reads() > before, 'the journal is read')
        await receiver.answerOther()
      }
      assert.equal(receiver.received.length, 16)
      gate.resolve()
      await receiver.waitFor(25)
      assert.equal(receiver.received.length, 25)
    })

    it('goes on after a stop where it was, and sends nothing twice', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      await add(store, receiver.url)
      const first = start(store)
      await createMany(store, 300n, 30)
      await receiver.waitFor(10)
      await first.close()
      await createMany(store, 330n, 10)
      start(store)
      await receiver.waitFor(40)
      assert.equal(receiver.received.length, 40)
    })

    it('sends again after a stop only what was on its way, though later changes were taken', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      const gate = Promise.withResolvers<number>()
      receiver.answer = ({ plantId }) => (plantId === '350' ? gate.promise : 200)
      const first = start(store, { closeMs: 1 })
      await createMany(store, 350n, 10)
      await waitUntil(
        async () => (await find(store, id)).progress.ahead.length === 9,
        'the later changes are saved',
      )
      await first.close()
      receiver.answer = () => 200
      start(store)
      await receiver.waitFor(10)
      gate.resolve(200)
      assert.equal(receiver.received.length, 11)
    })

    it('tries a change again with the same id until it is taken, and holds up no other plant', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url, { types: everyType })
      let failuresLeft = 5
      receiver.answer = ({ plantId }) =>
        plantId === '400' && failuresLeft > 0 && receiver.taken().length >= 20
          ? 500 - failuresLeft--
          : plantId === '400' && failuresLeft > 0
            ? 503
            : 200
      start(store, { retryDelaysMs: Array(10).fill(20) })
      await store.createPlant({ id: 400n, name: 'first' })
      await store.replacePlant({ id: 400n, name: 'second' }, anyVersion)
      await createMany(store, 401n, 20)
      await receiver.waitFor(22)
      const seen = receiver.received.filter(({ plantId }) => plantId === '400')
      assert.equal(new Set(seen.slice(0, -1).map((one) => one.id)).size, 1)
      assert.deepEqual(
        [...new Set(seen.map(({ body }) => JSON.parse(body).name))],
        ['first', 'second'],
      )
      assert.equal(receiver.taken().at(-1), seen.at(-1)?.id)
      const times = seen.map(({ headers }) => Number(headers['webhook-timestamp']))
      assert.ok(times.every((time) => Math.abs(time - Date.now() / 1000) < 120))
      await waitUntil(
        async () => (await store.receivers.listDeliveries(id, 'waiting')).length === 0,
        'nothing waits',
      )
    })

    it('keeps a change as a failure after the last attempt, and sends it again when asked to', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url, { types: everyType })
      receiver.answer = ({ event }) => (event === 'plant.created' ? 418 : 200)
      start(store)
      await store.createPlant({ id: 500n, name: 'refused' })
      await store.replacePlant({ id: 500n, name: 'taken' }, anyVersion)
      await receiver.waitFor(1)
      assert.equal(receiver.received.filter(({ event }) => event === 'plant.created').length, 11)
      const [failure] = await store.receivers.listDeliveries(id, 'failed')
      assert.deepEqual(
        [failure?.attempts, failure?.lastStatus, failure?.lastError, failure?.plantId],
        [11, 418, 'answered 418', 500n],
      )
      receiver.answer = () => 204
      assert.equal(await store.receivers.retryFailures(id, Date.now()), 1)
      await receiver.waitFor(2)
      assert.equal(receiver.received.at(-1)?.body, '{"id":500,"name":"refused"}')
      await waitUntil(
        async () => (await store.receivers.listDeliveries(id, 'waiting')).length === 0,
        'nothing waits',
      )
      assert.deepEqual(await store.receivers.listDeliveries(id, 'failed'), [])
    })

    it('does not try again before Retry-After', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      await add(store, receiver.url)
      receiver.answer = () =>
        receiver.received.length > 1 ? 200 : { status: 429, headers: { 'Retry-After': '1' } }
      start(store)
      await store.createPlant({ id: 600n, name: 'patient' })
      await receiver.waitFor(1)
      const [first, second] = receiver.received
      assert.ok(Number(second?.receivedAt) - Number(first?.receivedAt) >= 990)
    })

    it('pauses a receiver that answers 410, and sends what it refused after it is resumed', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      receiver.answer = () => 410
      const watched = watch(store)
      start(watched.store)
      await createMany(store, 700n, 3)
      await waitUntil(async () => (await find(store, id)).state === 'paused', 'it is paused')
      assert.match((await find(store, id)).reason ?? '', /410/)
      // Nobody tells the sender of the next changes.
      await waitUntil(() => watched.watchers() === 0, 'nothing is delivered any more')
      await createMany(store, 703n, 2)
      receiver.answer = () => 200
      await store.receivers.change(id, { kind: 'resume' })
      await receiver.waitFor(5)
      assert.equal((await find(store, id)).reason, undefined)
    })

    it('pauses a receiver that answers 410 while a save of it fails', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      const saving = Promise.withResolvers<void>()
      receiver.answer = async ({ plantId }) => {
        if (plantId === '740') return 200
        await saving.promise
        return 410
      }
      const refused = Promise.withResolvers<void>()
      const warn = (_: object, words: string) => words.includes('paused') && refused.resolve()
      let isFirst = true
      const receivers: Store['receivers'] = {
        ...store.receivers,
        async save(...saved) {
          if (!isFirst) return store.receivers.save(...saved)
          isFirst = false
          saving.resolve()
          await refused.promise
          throw new Error('a failed save')
        },
      }
      const logger = { debug() {}, info() {}, warn } as never
      releaseAfterTest(openTestSender({ ...store, receivers }, {}, logger).close)
      await createMany(store, 740n, 2)
      await waitUntil(async () => (await find(store, id)).state === 'paused', 'it is paused')
    })

    it('pauses a receiver that fails for too long without a success', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      receiver.answer = () => 500
      // More retries than fit into the patience, or the change would be given up first.
      start(store, { patienceMs: 30, retryDelaysMs: Array(1_000).fill(1) })
      await store.createPlant({ id: 750n, name: 'x' })
      await waitUntil(async () => (await find(store, id)).state === 'paused', 'it is paused')
      assert.match((await find(store, id)).reason ?? '', /every attempt has failed/)
      receiver.answer = () => 200
      await store.receivers.change(id, { kind: 'resume' })
      await receiver.waitFor(1)
    })

    it('gives a receiver all of its patience again after it is resumed', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      const resumed = Promise.withResolvers<void>()
      // The first failures pause it; the last answer comes after an operator has resumed it.
      receiver.answer = async ({ plantId }) => {
        if (plantId === '761') await resumed.promise
        return 500
      }
      start(store, { patienceMs: 30, retryDelaysMs: Array(1_000).fill(20), pollMs: 10_000 })
      await createMany(store, 760n, 2)
      await waitUntil(async () => (await find(store, id)).state === 'paused', 'it is paused')
      await store.receivers.change(id, { kind: 'resume' })
      const failedAt = (await find(store, id)).progress.lastFailureAt
      resumed.resolve()
      await waitUntil(
        async () => (await find(store, id)).progress.lastFailureAt !== failedAt,
        'the last failure is saved',
      )
      assert.equal((await find(store, id)).progress.failingSince, undefined)
    })

    it('stops for a receiver that is paused, and forgets one that is removed', async () => {
      const { store } = stores
      const [paused, removed] = [await openTestReceiver(), await openTestReceiver()]
      const one = await add(store, paused.url)
      const other = await add(store, removed.url)
      const witness = await openTestReceiver()
      start(store)
      await store.createPlant({ id: 800n, name: 'x' })
      await paused.waitFor(1)
      await removed.waitFor(1)
      await store.receivers.change(one.id, { kind: 'pause', reason: 'for a test' })
      await store.receivers.remove(other.id)
      // Added last: who delivers to it knows the changes before it.
      await add(store, witness.url)
      await store.createPlant({ id: 801n, name: 'before the witness is known' })
      await witness.waitFor(1)
      await store.createPlant({ id: 802n, name: 'after' })
      await witness.waitFor(2)
      assert.ok(paused.received.every(({ plantId }) => plantId !== '802'))
      assert.ok(removed.received.every(({ plantId }) => plantId !== '802'))
      await store.receivers.change(one.id, { kind: 'resume' })
      await paused.waitFor(3)
    })

    it('signs with both secrets after a rotation', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      const { id, secrets } = await add(store, receiver.url)
      start(store)
      await store.createPlant({ id: 849n, name: 'x' })
      await receiver.waitFor(1)
      const rotated = {
        current: newSecret(),
        previous: secrets.current,
        previousUntil: Date.now() + rotationMs,
      }
      await store.receivers.change(id, { kind: 'set secrets', secrets: rotated })
      let plant = 850n
      await waitUntil(async () => {
        await store.createPlant({ id: plant++, name: 'x' })
        await receiver.waitFor(Number(plant - 849n))
        return receiver.received.at(-1)?.headers['webhook-signature']?.includes(' ') === true
      }, 'there are two signatures')
      const last = receiver.received.at(-1)
      verify(last as never, rotated.current)
      verify(last as never, rotated.previous)
    })

    it('sends no second change of a plant when an operator changes something meanwhile', async () => {
      const { store } = stores
      const receiver = await openTestReceiver()
      const { id, secrets } = await add(store, receiver.url, { types: everyType })
      const first = Promise.withResolvers<number>()
      receiver.answer = ({ event, plantId }) =>
        plantId === '880' && event === 'plant.created' ? first.promise : 200
      releaseAfterTest(() => first.resolve(200))
      start(store)
      await store.createPlant({ id: 880n, name: 'on its way' })
      await waitUntil(() => receiver.received.length === 1, 'the first change is on its way')
      await store.replacePlant({ id: 880n, name: 'waits' }, anyVersion)
      for (let plant = 881n; plant < 891n; plant++) {
        await store.receivers.change(id, { kind: 'set secrets', secrets })
        await store.createPlant({ id: plant, name: 'x' })
        await receiver.waitFor(Number(plant - 880n))
      }
      assert.deepEqual(receiver.together, [])
      first.resolve(200)
      await receiver.waitFor(12)
    })

    it('goes on from the oldest change when its position is no longer kept, and says so', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      for (const plant of [1n, 2n, 3n]) await store.createPlant({ id: plant, name: 'x' })
      // The last commit always stays.
      while (!(await store.trimJournal(Date.now() + 1_000)));
      start(store)
      await receiver.waitFor(1)
      await waitUntil(async () => (await find(store, id)).reason !== undefined, 'the gap is told')
      const { state, reason } = await find(store, id)
      assert.deepEqual([state, reason?.includes('gap')], ['active', true])
      assert.deepEqual(
        receiver.received.map(({ plantId }) => plantId),
        ['3'],
      )
    })

    it('goes on after a gap when the journal was too large for what it needed', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      for (const plant of [1n, 2n, 3n]) await store.createPlant({ id: plant, name: 'x' })
      const { at } = (await readPage(store)).events[0] ?? assert.fail()
      // By age, all of it would stay.
      assert.ok((await findTrimTime(store, 0, Date.now() + 60_000)) <= at)
      await boundJournal(store, 200).keep()
      start(store)
      await receiver.waitFor(2)
      await waitUntil(async () => (await find(store, id)).reason !== undefined, 'the gap is told')
      assert.match((await find(store, id)).reason ?? '', /gap/)
      assert.deepEqual(receiver.received.map(({ plantId }) => plantId).sort(), ['2', '3'])
    })

    it('bounds the changes that it keeps for a receiver that is down, and loses none', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      let isUp = false
      receiver.answer = () => (isUp ? 200 : 503)
      start(store, { keptDeliveries: 20, retryDelaysMs: [50, ...Array(9).fill(1_000)] })
      await createMany(store, 1n, 200)
      await waitUntil(() => receiver.received.length > 50, 'many attempts fail')
      assert.ok((await store.receivers.listDeliveries(id, 'waiting')).length <= 20)
      isUp = true
      await receiver.waitFor(200)
      await waitUntil(
        async () => (await find(store, id)).progress.position === (await store.journalEnd()),
        'the position is saved',
      )
    })
  })
}
