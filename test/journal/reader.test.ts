import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { buildReader, type JournalReader } from '../../src/journal/reader.ts'
import type { JournalEvent, JournalPage, Position, Store } from '../../src/store/store.ts'
import { readAll } from '../store/journal-pages.ts'
import { engines } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { storeMany, watch } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'

/** Follows until the test ends, and notes what comes. */
function follow(
  reader: JournalReader,
  after: Position | 'oldest',
  onPage = (_: JournalPage) => {},
) {
  const events: JournalEvent[] = []
  const left = new AbortController()
  releaseAfterTest(() => left.abort())
  async function run(): Promise<'left' | 'gone' | 'off'> {
    for await (const page of reader.follow(after, left.signal)) {
      if (typeof page === 'string') return page
      onPage(page)
      events.push(...page.events)
    }
    return 'left'
  }
  const ended = run()
  ended.catch(() => {})
  return { events, ended, leave: () => left.abort() }
}

/** Counts something in each turn of the event loop until the test ends. */
function countInTurns() {
  let count = 0
  let most = 0
  const endTurn = () => {
    most = Math.max(most, count)
    count = 0
    turn = setImmediate(endTurn)
  }
  let turn = setImmediate(endTurn)
  releaseAfterTest(() => clearImmediate(turn))
  return { add: () => void count++, most: () => Math.max(most, count) }
}

/** A reader that notes each read, before it begins, and the reads that have found changes. */
function openNoting(store: Store) {
  const begun: string[] = []
  const found: string[] = []
  const reader = buildReader({
    ...store,
    async readJournal(after, limit) {
      begun.push(after)
      const page = await store.readJournal(after, limit)
      if (typeof page === 'object' && page.events.length > 0) found.push(after)
      return page
    },
  })
  return { reader, begun, found }
}

describe('a reader of the journal', () => {
  it('reads soon after a change, also after a read that has failed', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const settle = async () => {
      for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
    }
    let reads = 0
    let announce = () => {}
    const page = { begin: 'a', events: [], end: 'a', isLast: true }
    const reader = buildReader({
      async readJournal() {
        if (++reads === 2) throw new Error('away')
        return page
      },
      watchJournal(onChange) {
        announce = onChange
        return () => {}
      },
    })
    follow(reader, 'a')
    await settle()
    for (const expected of [2, 3]) {
      announce()
      t.mock.timers.tick(20)
      await settle()
      assert.equal(reads, expected)
    }
  })
})

for (const engine of engines) {
  describe(`a reader of the journal on ${engine.name}`, () => {
    const open = async () => engine.open(await engine.newUrl())
    const positions = (events: readonly JournalEvent[]) => events.map(({ position }) => position)

    it('reads one page in a turn of the event loop, however many are behind', async () => {
      const store = await open()
      await storeMany(store, 1, 3_000)
      const all = await readAll(store, 1_000)
      const reads = countInTurns()
      const reader = buildReader({
        ...store,
        async readJournal(...asked) {
          const page = await store.readJournal(...asked)
          // Followers that have caught up look for more at once, and find nothing.
          if (typeof page === 'object' && page.events.length > 0) reads.add()
          return page
        },
      })
      // More than a page apart, so none can share one.
      const followers = Array.from({ length: 10 }, (_, index) => {
        const begin = index * 300
        return { begin, ...follow(reader, all[begin]?.position as Position) }
      })
      for (const { begin, events } of followers) {
        const rest = positions(all.slice(begin + 1))
        await waitUntil(() => events.length >= rest.length, 'a follower has caught up')
        assert.deepEqual(positions(events), rest)
      }
      assert.equal(reads.most(), 1)
    })

    it('gives a page to at most 32 followers in a turn of the event loop', async () => {
      const store = await open()
      await store.createPlant({ id: 1n, name: 'x' })
      const reader = buildReader(store)
      const pages = countInTurns()
      const followers = Array.from({ length: 200 }, () => follow(reader, 'oldest', pages.add))
      for (const { events } of followers) {
        await waitUntil(() => events.length === 1, 'a follower has caught up')
      }
      assert.ok(pages.most() <= 32, `${pages.most()} followers`)
    })

    it('reads a page once for all that follow from one place, before and after a change', async () => {
      const store = await open()
      const begin = (await store.journalEnd()) as Position
      await storeMany(store, 1, 600)
      const { reader, found } = openNoting(store)
      const pages = new Set<JournalPage>()
      const followers = Array.from({ length: 100 }, () =>
        follow(reader, begin, (page) => pages.add(page)),
      )
      const haveAll = (count: number) =>
        waitUntil(() => followers.every(({ events }) => events.length === count), `${count} came`)
      await haveAll(600)
      await store.createPlant({ id: 1_000n, name: 'x' })
      await haveAll(601)
      assert.equal(new Set(found).size, found.length)
      assert.equal(pages.size, found.length)
    })

    it('gives what came while nobody followed, to one that stood at the end before', async () => {
      const store = await open()
      await storeMany(store, 1, 3)
      const { reader, begun } = openNoting(store)
      const first = follow(reader, 'oldest')
      // The second read finds the end, at which the follower waits.
      await waitUntil(() => first.events.length === 3 && begun.length === 2, 'it has caught up')
      first.leave()
      await first.ended
      await storeMany(store, 4, 1)
      const second = follow(reader, first.events.at(-1)?.position as Position)
      await waitUntil(() => second.events.length === 1, 'the change comes')
    })

    it('gives what came after a page was kept, while nobody followed and nothing told', async () => {
      const store = await open()
      const begin = (await store.journalEnd()) as Position
      await storeMany(store, 1, 1)
      const reader = buildReader({ ...store, watchJournal: () => () => {} })
      await reader.read(begin)
      await storeMany(store, 2, 1)
      const { events } = follow(reader, begin)
      await waitUntil(() => events.length === 2, 'both changes come')
    })

    it('reads pages once for all that begin within one page', async () => {
      const store = await open()
      await storeMany(store, 1, 1_000)
      const all = await readAll(store, 1_000)
      const { reader, begun } = openNoting(store)
      const followers = all.slice(0, 100).map(({ position }) => follow(reader, position))
      for (const [index, { events }] of followers.entries()) {
        const rest = positions(all.slice(index + 1))
        await waitUntil(() => events.length >= rest.length, 'a follower has caught up')
        assert.deepEqual(positions(events), rest)
      }
      assert.ok(begun.length < 10, `${begun.length} reads`)
    })

    it('watches the store only while it is followed', async () => {
      const store = await open()
      const watched = watch(store)
      const reader = buildReader(watched.store)
      for (let round = 1; round <= 2; round++) {
        const followers = [follow(reader, 'oldest'), follow(reader, 'oldest')]
        await store.createPlant({ id: BigInt(round), name: 'x' })
        for (const { events } of followers) await waitUntil(() => events.length === round, 'told')
        assert.equal(watched.watchers(), 1)
        for (const { leave, ended } of followers) {
          leave()
          assert.equal(await ended, 'left')
        }
        assert.equal(watched.watchers(), 0)
      }
    })

    it('keeps live followers while the store is away, and fails for one behind', async () => {
      const store = await open()
      let isAway = false
      let failures = 0
      let reads = 0
      const reader = buildReader({
        ...store,
        async readJournal(...asked) {
          if (!isAway) {
            reads++
            return store.readJournal(...asked).finally(() => reads--)
          }
          failures++
          throw new Error('away')
        },
      })
      const live = follow(reader, 'oldest')
      await store.createPlant({ id: 1n, name: 'x' })
      await waitUntil(() => live.events.length === 1, 'the first change has come')
      isAway = true
      await waitUntil(() => reads === 0, 'no read can find the next change')
      await store.createPlant({ id: 2n, name: 'x' })
      // One after the commit and one after a poll of the store may fail: the third is a retry.
      await waitUntil(() => failures > 2, 'the failed read is repeated')
      await assert.rejects(follow(reader, 'oldest').ended, /^Error: away$/)
      isAway = false
      await waitUntil(() => live.events.length === 2, 'the change has come without another one')
    })

    it('ends with "off" when another process switches the journal off', async () => {
      const url = await engine.newUrl()
      const { events, ended } = follow(buildReader(await engine.open(url)), 'oldest')
      const other = await engine.open(url)
      await other.createPlant({ id: 1n, name: 'x' })
      await waitUntil(() => events.length === 1, 'the follower is live')
      await engine.open(url, { journaling: 'off' })
      assert.equal(await ended, 'off')
    })

    it('ends with "gone" after a trim, and keeps no page for the oldest', async () => {
      const store = await open()
      await storeMany(store, 1, 2)
      const reader = buildReader(store)
      const first = (await reader.read('oldest')) as JournalPage
      await storeMany(store, 3, 2)
      while (!(await store.trimJournal(Date.now() + 60_000)));
      assert.notEqual(((await reader.read('oldest')) as JournalPage).begin, first.begin)
      assert.equal(await follow(reader, first.begin).ended, 'gone')
    })
  })
}
