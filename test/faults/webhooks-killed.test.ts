import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { WebhookType } from '../../src/contract/webhooks.ts'
import { engines } from '../support/engines.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver, type TestReceiver } from '../webhooks/test-receiver.ts'
import { add, createMany, openStores, start } from '../webhooks/test-sender.ts'
import { startSender } from './lab/sender-process.ts'

const types: WebhookType[] = ['plant.created', 'plant.replaced']
const anyVersion = { match: undefined, noneMatch: undefined }
const count = 40

for (const engine of engines) {
  describe(`a sender that is killed on ${engine.name}`, () => {
    it('between a take and the first attempt has sent nothing, and the next sends all once', async () => {
      const { url, store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      const sender = await startSender(url)
      sender.tell('hold takes')
      await sender.hear('takes wait')
      await createMany(store, 1n, count)
      await sender.hear('a take is held')
      const waiting = await store.receivers.listDeliveries(id, 'waiting')
      assert.ok(waiting.length > 0)
      await sender.end('SIGKILL')
      assert.equal(receiver.received.length, 0)
      start(store)
      await receiver.waitFor(count)
      assert.equal(receiver.received.length, count)
    })

    it('while requests are in flight repeats these, and no others', async () => {
      const { url, store } = await openStores(engine)
      const receiver = await openTestReceiver()
      await add(store, receiver.url)
      const sender = await startSender(url)
      receiver.answer = () => new Promise(() => {})
      await createMany(store, 1n, count)
      await waitUntil(() => receiver.received.length >= 16, '16 are in flight')
      await sender.end('SIGKILL')
      await receiver.restart()
      receiver.answer = () => 200
      start(store)
      await receiver.waitFor(count)
      assert.equal(receiver.received.length, count + 16)
    })

    it('between answers and their save repeats at most 16, in order', async () => {
      const { url, store } = await openStores(engine)
      const receiver = await openTestReceiver()
      await add(store, receiver.url, { types })
      const sender = await startSender(url)
      await createMany(store, 1n, count)
      await receiver.waitFor(count)
      const isSaved = async () => (await store.receivers.listBacklogs()).length === 0
      await waitUntil(isSaved, 'the first ones are saved')
      sender.tell('hold saves')
      await sender.hear('saves wait')
      for (const name of ['second', 'third']) await replaceAll(store, name)
      await waitUntil(() => receiver.received.length >= count + 16, '16 are taken and not saved')
      await sender.hear('a save is held')
      await sender.end('SIGKILL')
      const before = receiver.received.length
      assert.equal(before, count + 16)
      start(store)
      await receiver.waitFor(3 * count)
      assert.ok(receiver.received.length <= 3 * count + 16, String(receiver.received.length))
      assert.deepEqual(findMisplaced(receiver), [])
    })

    it('while changes fail goes on in order, with the attempts that were made', async () => {
      const { url, store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url, { types })
      // Every other plant is refused: its later changes have to wait.
      let isUp = false
      receiver.answer = ({ plantId }) => (isUp || BigInt(plantId) % 2n === 0n ? 200 : 500)
      const sender = await startSender(url, { retryDelaysMs: Array(1_000).fill(20) })
      await createMany(store, 1n, count)
      for (const name of ['second', 'third']) await replaceAll(store, name)
      await receiver.waitFor((3 * count) / 2)
      const attempts = async () => {
        const waiting = await store.receivers.listDeliveries(id, 'waiting')
        return waiting.filter((one) => one.attempts > 1).length
      }
      await waitUntil(async () => (await attempts()) === count / 2, 'all are tried again')
      await sender.end('SIGKILL')
      const waiting = await store.receivers.listDeliveries(id, 'waiting')
      assert.ok(waiting.length >= (3 * count) / 2)
      isUp = true
      start(store)
      await receiver.waitFor(3 * count)
      assert.deepEqual(findMisplaced(receiver), [])
    })
  })
}

async function replaceAll(store: Awaited<ReturnType<typeof openStores>>['store'], name: string) {
  const ids = Array.from({ length: count }, (_, index) => BigInt(index + 1))
  await Promise.all(ids.map((id) => store.replacePlant({ id, name }, anyVersion)))
}

/** The plants of which an older change came after a newer one. */
function findMisplaced({ received }: TestReceiver): string[] {
  const order = (name: string) => ['second', 'third'].indexOf(name)
  const newest = new Map<string, number>()
  return received
    .filter(({ plantId, body }) => {
      const place = order(JSON.parse(body).name)
      const before = newest.get(plantId) ?? -1
      newest.set(plantId, Math.max(before, place))
      return place < before
    })
    .map(({ plantId }) => plantId)
}
