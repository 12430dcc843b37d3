import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { limits } from '../../src/contract/limits.ts'
import { type Cursor, toCursor, toPosition } from '../../src/journal/position.ts'
import { findEvent } from '../../src/journal/reader.ts'
import { type JournalEvent, type Store, toPlant } from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { readAll, readPage } from './journal-pages.ts'

function toText(event: JournalEvent): string {
  const { type, tokenId } = event
  const plant = toPlant(event)
  return [type, plant.id, plant.name, plant.tag ?? '-', tokenId ?? '-'].join(' ')
}

async function countBatches(store: Store): Promise<number> {
  const { batchItems } = await store.measure()
  return batchItems.counts.reduce((sum, count) => sum + count)
}

for (const engine of engines) {
  describe(`the journal on ${engine.name}`, () => {
    let url: string
    let store: Store
    beforeEach(async () => {
      url = await engine.newUrl()
      store = await engine.open(url)
    })

    it('has a change at each of its positions, and none at one that it never gave', async () => {
      for (const id of [1n, 2n]) await store.createPlant({ id, name: 'x' })
      const [first, second] = await readAll(store, 10)
      assert.ok(first && second)
      assert.deepEqual(await findEvent(store, second.position), second)
      const cursor = toCursor(first.position) as Cursor
      const beyond = toPosition({ ...cursor, index: cursor.index + 1 })
      assert.equal(await findEvent(store, beyond), undefined)
    })

    it('has every change once, in order, with the plant and the token', async () => {
      await store.createPlant({ id: 1n, name: 'tab\t "quote" \\ line\n🌵', tag: '' }, 'token-1')
      await store.createPlantOnce({ id: 2n, name: 'keyed' }, { tokenId: 'token-2', key: 'a' })
      await store.replacePlant({ id: 1n, name: 'changed' }, {}, 'token-3')
      await store.replacePlant({ id: 1n, name: 'changed' }, {}, 'token-3')
      await store.replacePlant({ id: -(2n ** 63n), name: 'put', tag: 'new' }, {}, 'token-4')
      await store.importPlants([{ id: 3n, name: 'imported' }], 'keep', 'token-5')
      await store.deletePlant(1n, {}, 'token-6')
      await store.createPlant({ id: 1n, name: 'again' })
      const { events } = await readPage(store)
      assert.deepEqual(events.map(toText), [
        'plant.created 1 tab\t "quote" \\ line\n🌵  token-1',
        'plant.created 2 keyed - token-2',
        'plant.replaced 1 changed - token-3',
        'plant.replaced 1 changed - token-3',
        'plant.created -9223372036854775808 put new token-4',
        'plant.created 3 imported - token-5',
        'plant.deleted 1 changed - token-6',
        'plant.created 1 again - -',
      ])
      const ages = events.map(({ at }) => Date.now() - at)
      assert.ok(ages.every((age) => age >= 0 && age < 60_000))
      assert.equal(new Set(events.map(({ position }) => position)).size, events.length)
      for (const { position } of events) assert.match(position, /^[A-Za-z0-9_-]{1,64}$/)
    })

    it('has the changes of a batch in the order of their arrival, each with its token', async () => {
      const ids = [5n, -1n, 30n, 7n, 2n ** 62n, 6n]
      const tokens = ['a', 'a', undefined, undefined, 'a', 'c']
      await Promise.all(ids.map((id, index) => store.createPlant({ id, name: 'n' }, tokens[index])))
      const imported = [9n, 3n, 8n].map((id) => ({ id, name: 'i' }))
      await store.importPlants(imported, 'keep', 'importer')
      const { events } = await readPage(store)
      assert.deepEqual(events.map(toText), [
        ...ids.map((id, index) => `plant.created ${id} n - ${tokens[index] ?? '-'}`),
        ...imported.map(({ id }) => `plant.created ${id} i - importer`),
      ])
    })

    it('says where a page begins and ends, and whether it is the last', async () => {
      for (let id = 0n; id < 3n; id++) await store.createPlant({ id, name: 'p' })
      const { begin, events, end, isLast } = await readPage(store)
      assert.deepEqual([events.length, isLast], [3, true])
      assert.deepEqual((await readPage(store, begin)).events, events)
      assert.equal((await readPage(store, begin, 2)).isLast, false)
      for (const other of [events[2]?.position, await store.journalEnd()]) assert.equal(other, end)
      assert.equal(await store.newestPosition(), end)
      assert.deepEqual(await readPage(store, end), { begin: end, events: [], end, isLast: true })
    })

    it('knows only positions of its own', async () => {
      const other = await engine.open(await engine.newUrl())
      await store.createPlant({ id: 1n, name: 'one' })
      await other.createPlant({ id: 1n, name: 'one' })
      const { end } = await readPage(store)
      assert.equal(await other.readJournal(end, 10), 'gone')
      assert.equal(await other.readJournal('nonsense', 10), 'gone')
      const cursor = toCursor(end)
      assert.ok(cursor)
      const [journalId, seq, index, nonce] = end.split('-')
      for (const unknown of [
        `${journalId}-${(cursor.seq + 1).toString(36)}-${index}-${nonce}`,
        `${journalId}-${seq}-${(cursor.index + 1).toString(36)}-${nonce}`,
        `${journalId}-${seq}-${index}-${(cursor.nonce ^ 1).toString(36)}`,
      ]) {
        assert.equal(await store.readJournal(unknown, 10), 'gone', unknown)
      }
    })

    it('forgets the oldest changes in steps, and never the place where it ends', async () => {
      const { begin } = await readPage(store)
      for (let id = 1n; id <= 5n; id++) await store.createPlant({ id, name: 'old' })
      const old = await readAll(store, 1_000)
      assert.equal(await store.trimJournal(old[0]?.at ?? 0), true)
      assert.deepEqual(await readAll(store, 1_000), old)
      while (!(await store.trimJournal(Date.now() + 60_000)));
      assert.equal(await store.readJournal(begin, 10), 'gone')
      assert.equal(await store.readJournal(old[2]?.position ?? '', 10), 'gone')
      const end = old.at(-1)?.position ?? ''
      assert.equal(await store.journalEnd(), end)
      assert.deepEqual((await readPage(store, end)).events, [])
      await store.createPlant({ id: 6n, name: 'new' })
      const { events } = await readPage(store, end)
      assert.deepEqual(events.map(toText), ['plant.created 6 new - -'])
      assert.deepEqual((await readPage(store)).events.at(-1), events[0])
    })

    it('keeps the place before the oldest change that is kept, however old it is', async () => {
      await store.createPlant({ id: 1n, name: 'gone' })
      const { end: tooOld } = await readPage(store)
      await store.createPlant({ id: 2n, name: 'read long ago' })
      const { end } = await readPage(store)
      const between = Date.now() + 1
      await waitUntil(() => Date.now() > between, 'the next change is newer')
      await store.createPlant({ id: 3n, name: 'new' })
      while (!(await store.trimJournal(between)));
      assert.equal(await store.readJournal(tooOld, 10), 'gone')
      const { events } = await readPage(store, end)
      assert.deepEqual(events.map(toText), ['plant.created 3 new - -'])
    })

    it('has the changes of one commit in one row, which pages of 1 MiB divide', async () => {
      const ids = Array.from({ length: 200 }, (_, index) => BigInt(index))
      // 8,001 bytes in UTF-8.
      const name = '中'.repeat(2_667)
      const before = await countBatches(store)
      await Promise.all(ids.map((id) => store.createPlant({ id, name })))
      await Promise.all(ids.map((id) => store.deletePlant(id, {})))
      const commits = (await countBatches(store)) - before
      const events = await readAll(store, 1_000)
      const expected = ['created', 'deleted'].flatMap((kind) =>
        ids.map((id) => `plant.${kind} ${id} ${name} - -`),
      )
      assert.deepEqual(events.map(toText), expected)
      const seqs = events.map(({ position }) => toCursor(position)?.seq)
      assert.equal(new Set(seqs).size, commits)
      const { events: first, isLast } = await readPage(store)
      const most = Math.floor(limits.pageBytes / Buffer.byteLength(name))
      assert.ok(first.length > most - 2 && first.length <= most && !isLast, `${first.length}`)
    })

    it('begins anew when it was off', async () => {
      await store.createPlant({ id: 1n, name: 'before' })
      const { end } = await readPage(store)
      await store.close()
      const off = await engine.open(url, { journaling: 'off' })
      await off.createPlant({ id: 2n, name: 'unseen' })
      assert.equal(await off.readJournal('oldest', 10), 'off')
      assert.equal(await off.journalEnd(), 'off')
      assert.equal(await off.newestPosition(), 'off')
      await off.close()
      const still = await engine.open(url)
      assert.equal(await still.journalEnd(), 'off')
      await still.close()
      const again = await engine.open(url, { journaling: 'on' })
      assert.equal(await again.readJournal(end, 10), 'gone')
      assert.deepEqual((await readPage(again)).events, [])
      await again.createPlant({ id: 3n, name: 'after' })
      assert.deepEqual((await readPage(again)).events.map(toText), ['plant.created 3 after - -'])
    })

    it('has the changes of a process that began when it was off', async () => {
      const off = await engine.open(url, { journaling: 'off' })
      await off.createPlant({ id: 1n, name: 'before' })
      const on = await engine.open(url, { journaling: 'on' })
      await off.createPlant({ id: 2n, name: 'alone' })
      await Promise.all([3n, 4n, 1n].map((id) => off.createPlant({ id, name: 'together' })))
      await off.createPlantOnce({ id: 5n, name: 'keyed' }, { tokenId: 't', key: 'a' })
      await off.replacePlant({ id: 1n, name: 'replaced' }, {})
      await off.deletePlant(2n, {})
      const imported = [1n, 6n, 7n].map((id) => ({ id, name: 'imported' }))
      await off.importPlants(imported, 'keep')
      assert.deepEqual((await readAll(on, 2)).map(toText), [
        'plant.created 2 alone - -',
        'plant.created 3 together - -',
        'plant.created 4 together - -',
        'plant.created 5 keyed - t',
        'plant.replaced 1 replaced - -',
        'plant.deleted 2 alone - -',
        'plant.created 6 imported - -',
        'plant.created 7 imported - -',
      ])
      await engine.open(url, { journaling: 'off' })
      const held = await on.measureJournal(0)
      await on.createPlant({ id: 8n, name: 'unseen' })
      assert.deepEqual(await on.measureJournal(0), held)
      assert.equal(await on.readJournal('oldest', 10), 'off')
      await engine.open(url, { journaling: 'on' })
      await on.createPlant({ id: 9n, name: 'seen' })
      assert.deepEqual((await readAll(on, 2)).map(toText), ['plant.created 9 seen - -'])
    })

    it('wakes its watchers after the commits of any process', async () => {
      const other = await engine.open(url)
      let wakes = 0
      const stop = store.watchJournal(() => wakes++)
      releaseAfterTest(stop)
      await store.createPlant({ id: 1n, name: 'own' })
      assert.ok(wakes > 0)
      await waitUntil(() => wakes > 1, 'the first look has passed')
      const before = wakes
      await other.createPlant({ id: 2n, name: 'of another' })
      await waitUntil(() => wakes > before, 'the change of another is noticed')
      assert.equal((await readPage(store)).events.length, 2)
    })
  })
}
