import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { newCluster, startServer } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { openPostgresStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver, type TestAnswer } from '../webhooks/test-receiver.ts'
import { add, start } from '../webhooks/test-sender.ts'

/** Takes and saves reach the disk with a later commit only, and no renewal is one. */
const settings = { wal_writer_delay: '10s' }
const longMs = 600_000
const retryMs = 1_000

describe('a sender beside a PostgreSQL that crashes', () => {
  /** A store with a receiver, and a way to crash its server. */
  async function prepare() {
    const folder = await newCluster()
    let server = await startServer(folder, settings)
    releaseAfterTest(() => server.stop())
    const store = await openPostgresStore(server.toUrl('postgres'))
    const receiver = await openTestReceiver()
    const { id } = await add(store, receiver.url, { types: ['plant.created', 'plant.replaced'] })
    const retryDelaysMs = [retryMs, 1]
    start(store, { renewMs: longMs, leaseMs: longMs, retryDelaysMs })
    return {
      store,
      receiver,
      listWaiting: () => store.receivers.listDeliveries(id, 'waiting'),
      isWaiting: async () => (await store.receivers.listDeliveries(id, 'waiting')).length > 0,
      async crash() {
        const { port, process } = server
        process.kill('SIGQUIT')
        await once(process, 'exit')
        server = await startServer(folder, settings, { port })
      },
    }
  }

  it('loses no change of a take that the crash has undone', async () => {
    const { store, receiver, crash } = await prepare()
    const crashed = Promise.withResolvers<TestAnswer>()
    receiver.answer = () => crashed.promise
    await store.createPlant({ id: 1n, name: 'taken, and forgotten' })
    await waitUntil(() => receiver.received.length > 0, 'it is on its way')
    await crash()
    receiver.answer = () => 204
    crashed.resolve(500)
    await waitUntil(() => store.ping().then(isTrue, isFalse), 'the store is back')
    await store.createPlant({ id: 2n, name: 'next' })
    await receiver.waitFor(2)
  })

  it('sends no change before an earlier one of its plant whose take was undone', async () => {
    const { store, receiver, crash, listWaiting } = await prepare()
    receiver.answer = () => 500
    await Promise.all([
      store.createPlant({ id: 1n, name: 'first' }),
      store.replacePlant({ id: 1n, name: 'second' }, { match: undefined, noneMatch: undefined }),
    ])
    await waitUntil(async () => (await listWaiting())[0]?.attempts === 1, 'the first has failed')
    await crash()
    receiver.answer = () => 204
    await waitUntil(() => store.ping().then(isTrue, isFalse), 'the store is back')
    await store.createPlant({ id: 2n, name: 'next' })
    await receiver.waitFor(3)
    const names = receiver.received.map(({ body }) => JSON.parse(body).name)
    const ofPlant = names.filter((name) => name !== 'next').join(' ')
    // The first one may arrive again, but nothing after the second.
    assert.match(ofPlant, /^(first )+second$/)
  })

  it('leaves nothing waiting that arrived before a save was undone', async () => {
    const { store, receiver, crash, isWaiting } = await prepare()
    const first = Promise.withResolvers<TestAnswer>()
    receiver.answer = () => first.promise
    await store.createPlant({ id: 1n, name: 'delivered, and forgotten' })
    await waitUntil(() => receiver.received.length > 0, 'it is on its way')
    // This commit makes the take last.
    await store.createPlant({ id: 2n, name: 'next' })
    first.resolve(204)
    await receiver.waitFor(2)
    await waitUntil(async () => !(await isWaiting()), 'both are saved')
    await crash()
    await waitUntil(() => store.ping().then(isTrue, isFalse), 'the store is back')
    await store.createPlant({ id: 3n, name: 'last' })
    await receiver.waitFor(3)
    await waitUntil(async () => !(await isWaiting()), 'nothing waits')
  })
})

const isTrue = () => true
const isFalse = () => false
