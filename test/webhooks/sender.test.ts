import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { type WebhookType, webhookHeaders } from '../../src/contract/webhooks.ts'
import type { Store } from '../../src/store/store.ts'
import { newSecret } from '../../src/webhooks/receiver.ts'
import { engines } from '../support/engines.ts'
import { watch } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver, verify } from './test-receiver.ts'
import {
  add,
  createMany,
  find,
  prepare,
  start,
  waitForEnd,
  waitForNone,
  waitForPause,
} from './test-sender.ts'

const everyType: WebhookType[] = ['plant.created', 'plant.replaced', 'plant.deleted']

for (const engine of engines) {
  describe(`the sender on ${engine.name}`, () => {
    let store: Store
    before(async () => {
      store = await engine.open(await engine.newUrl())
    })

    it('sends a created plant as it was created, signed, with its digits exact', async () => {
      const { receiver, secrets } = await prepare(store)
      start(store)
      const id = 9_007_199_254_740_993n
      await store.createPlant({ id, name: 'Grüne "Palme"\n🌴', tag: '' })
      await store.createPlant({ id: id + 1n, name: 'Aloe' })
      await receiver.waitFor(2)
      const sorted = receiver.received.sort((one, other) => (one.body < other.body ? -1 : 1))
      assert.deepEqual(
        sorted.map(({ body }) => body),
        [
          '{"id":9007199254740993,"name":"Grüne \\"Palme\\"\\n🌴","tag":""}',
          '{"id":9007199254740994,"name":"Aloe"}',
        ],
      )
      const [first = assert.fail()] = sorted
      assert.equal(first.event, 'plant.created')
      assert.equal(first.headers['content-type'], 'application/json')
      assert.match(first.id, /^[A-Za-z0-9_-]{1,64}$/)
      const declared = Object.keys(webhookHeaders).map((name) => name.toLowerCase())
      const ofHttp = ['connection', 'content-length', 'content-type', 'host', 'user-agent']
      assert.deepEqual(Object.keys(first.headers).sort(), [...declared, ...ofHttp].sort())
      verify(first, secrets.current)
      assert.throws(() => verify(first, newSecret()))
    })

    it('sends the wanted types only, of one plant in order, never two together', async () => {
      const [all, deletes] = [await openTestReceiver(), await openTestReceiver()]
      await add(store, all.url, { types: everyType })
      await add(store, deletes.url, { types: ['plant.deleted'] })
      start(store)
      const ids = [101n, 102n, 103n]
      for (const id of ids) await store.createPlant({ id, name: 'v0' })
      for (let count = 1; count <= 6; count++) {
        await Promise.all(ids.map((id) => store.replacePlant({ id, name: `v${count}` }, {})))
      }
      for (const id of ids) await store.deletePlant(id, {})
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
      const { receiver, id } = await prepare(store)
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
      await waitForEnd(store, id)
    })

    it('sends again after a stop only what was on its way, though later changes were taken', async () => {
      const { receiver, id } = await prepare(store)
      const gate = Promise.withResolvers<number>()
      receiver.answer = ({ plantId }) => (plantId === '350' ? gate.promise : 200)
      const first = start(store, { closeMs: 1 })
      await createMany(store, 350n, 10)
      await receiver.waitFor(9)
      const waiting = async () => (await store.receivers.listDeliveries(id, 'waiting')).length
      await waitUntil(async () => (await waiting()) === 1, 'the later changes are saved')
      await first.close()
      receiver.answer = () => 200
      start(store)
      await receiver.waitFor(10)
      gate.resolve(200)
      assert.equal(receiver.received.length, 11)
    })

    it('tries a change again with the same id until it is taken, and holds up no other plant', async () => {
      const { receiver, id } = await prepare(store, { types: everyType })
      receiver.answer = ({ plantId }) =>
        plantId === '400' && receiver.taken().length < 20 ? 503 : 200
      start(store, { retryDelaysMs: Array(1_000).fill(20) })
      await store.createPlant({ id: 400n, name: 'first' })
      await store.replacePlant({ id: 400n, name: 'second' }, {})
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
      await waitForNone(store, id)
    })

    it('keeps a change as a failure after the last attempt, and sends it again when asked to', async () => {
      const { receiver, id } = await prepare(store, { types: everyType })
      receiver.answer = ({ event }) => (event === 'plant.created' ? 418 : 200)
      start(store)
      await store.createPlant({ id: 500n, name: 'refused' })
      await store.replacePlant({ id: 500n, name: 'taken' }, {})
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
      await waitForNone(store, id)
      assert.deepEqual(await store.receivers.listDeliveries(id, 'failed'), [])
    })

    it('does not try again before Retry-After', async () => {
      const { receiver } = await prepare(store)
      receiver.answer = () =>
        receiver.received.length > 1 ? 200 : { status: 429, headers: { 'Retry-After': '1' } }
      start(store)
      await store.createPlant({ id: 600n, name: 'patient' })
      await receiver.waitFor(1)
      const [first, second] = receiver.received
      assert.ok(Number(second?.receivedAt) - Number(first?.receivedAt) >= 990)
    })

    it('pauses a receiver that answers 410, and sends what it refused after it is resumed', async () => {
      const { receiver, id } = await prepare(store)
      receiver.answer = () => 410
      const watched = watch(store)
      start(watched.store)
      await createMany(store, 700n, 3)
      await waitForPause(store, id)
      assert.match((await find(store, id)).reason ?? '', /410/)
      // Nobody tells the sender of the next changes.
      await waitUntil(() => watched.watchers() === 0, 'nothing is delivered any more')
      await createMany(store, 703n, 2)
      receiver.answer = () => 200
      await store.receivers.change(id, { kind: 'resume' })
      await receiver.waitFor(5)
      assert.equal((await find(store, id)).reason, undefined)
    })

    it('stops for a receiver that is paused, and forgets one that is removed', async () => {
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

    it('continues from the oldest change when its position is no longer kept, and says so', async () => {
      const { store, receiver, id } = await prepare(engine)
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
  })
}
