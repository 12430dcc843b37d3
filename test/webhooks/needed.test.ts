import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findTrimTime } from '../../src/journal/trim.ts'
import type { Store } from '../../src/store/store.ts'
import { newReceiver } from '../../src/webhooks/receiver.ts'
import { engines, postgres } from '../support/engines.ts'
import { waitUntil } from '../support/wait.ts'
import { add, find, openStores, start } from './test-sender.ts'

const hourMs = 60 * 60 * 1000
const dayMs = 24 * hourMs

for (const engine of engines) {
  describe(`the journal on ${engine.name}`, () => {
    it('is trimmed by age, unless an active receiver needs more, and then three days later', async () => {
      const store = await engine.open(await engine.newUrl())
      const now = Date.now()
      const add = async (position: string) => {
        const receiver = newReceiver({ url: 'http://x/', types: ['plant.created'], position })
        await store.receivers.add(receiver)
        return receiver.id
      }
      await store.createPlant({ id: 1n, name: 'first' })
      const [first] = await readAll(store)
      assert.ok(first)
      const id = await add(first.position)
      // It has everything.
      assert.equal(await findTrimTime(store, hourMs, now), now - hourMs)
      await store.createPlant({ id: 2n, name: 'second' })
      const [, second] = await readAll(store)
      assert.ok(second)
      // Seen from later, it still needs the second.
      assert.equal(await findTrimTime(store, hourMs, now + hourMs), Math.min(second.at, now))
      assert.equal(await findTrimTime(store, hourMs, now + dayMs), second.at)
      assert.equal(await findTrimTime(store, hourMs, now + 5 * dayMs), now + 2 * dayMs - hourMs)
      await store.receivers.change(id, { kind: 'pause', reason: 'x' })
      assert.equal(await findTrimTime(store, hourMs, now + dayMs), now + dayMs - hourMs)
    })

    it('keeps the position of a receiver that needs what comes after it', async () => {
      const store = await engine.open(await engine.newUrl())
      for (const id of [1n, 2n, 3n]) await store.createPlant({ id, name: 'x' })
      const [, second] = await readAll(store)
      assert.ok(second)
      const { position } = second
      await store.receivers.add(
        newReceiver({ url: 'http://x/', types: ['plant.created'], position }),
      )
      const before = await findTrimTime(store, hourMs, Date.now() + dayMs)
      while (!(await store.trimJournal(before)));
      assert.notEqual(await store.readJournal(position, 1), 'gone')
    })
  })
}

describe('the position of a receiver', () => {
  it('is saved behind unwanted changes, though the store fails meanwhile', async () => {
    // On SQLite, the next renewal of the lease would wake the sender as well.
    const { store } = await openStores(postgres)
    const { id } = await add(store, 'http://127.0.0.1:1/', { types: ['plant.deleted'] })
    let takes = 0
    start({
      ...store,
      receivers: {
        ...store.receivers,
        async take(...taken) {
          if (takes++ === 0) throw new Error('the store is away')
          return store.receivers.take(...taken)
        },
      },
    })
    await store.createPlant({ id: 1n, name: 'unwanted' })
    const end = await store.journalEnd()
    const isSaved = async () => (await find(store, id)).progress.position === end
    await waitUntil(isSaved, 'the position is saved')
    assert.ok(takes > 1)
  })
})

async function readAll(store: Store) {
  const page = await store.readJournal('oldest', 100)
  assert.ok(typeof page === 'object')
  return page.events
}
