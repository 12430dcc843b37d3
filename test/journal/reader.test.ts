import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildReader, type JournalReader } from '../../src/journal/reader.ts'
import type { JournalEvent, JournalPage, Position, Store } from '../../src/store/store.ts'
import { readAll } from '../store/journal-pages.ts'
import { engines } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { watch } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'

async function createMany(store: Store, first: number, count: number): Promise<void> {
  const ids = Array.from({ length: count }, (_, index) => BigInt(first + index))
  await store.importPlants(
    ids.map((id) => ({ id, name: 'x' })),
    'keep',
  )
}

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

for (const engine of engines) {
  describe(`a reader of the journal on ${engine.name}`, () => {
    const open = async () => engine.open(await engine.newUrl())
    const positions = (events: readonly JournalEvent[]) => events.map(({ position }) => position)

    it('reads one page in a turn of the event loop, however many are behind', async () => {
      const store = await open()
      await createMany(store, 1, 3_000)
      const all = await readAll(store, 1_000)
      let reads = 0
      let mostReads = 0
      let isRunning = true
      const countTurn = () => {
        mostReads = Math.max(mostReads, reads)
        reads = 0
        if (isRunning) setImmediate(countTurn)
      }
      releaseAfterTest(() => {
        isRunning = false
      })
      setImmediate(countTurn)
      const reader = buildReader({
        ...store,
        async readJournal(...asked) {
          const page = await store.readJournal(...asked)
          // Followers that have caught up look for more at once, and find nothing.
          if (typeof page === 'object' && page.events.length > 0) reads++
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
      assert.equal(mostReads, 1)
    })

    it('gives a page to at most 64 followers in a turn of the event loop', async () => {
      const store = await open()
      await store.createPlant({ id: 1n, name: 'x' })
      const reader = buildReader(store)
      let pages = 0
      let mostPages = 0
      let isRunning = true
      const countTurn = () => {
        mostPages = Math.max(mostPages, pages)
        pages = 0
        if (isRunning) setImmediate(countTurn)
      }
      releaseAfterTest(() => {
        isRunning = false
      })
      setImmediate(countTurn)
      const followers = Array.from({ length: 200 }, () => follow(reader, 'oldest', () => pages++))
      for (const { events } of followers) {
        await waitUntil(() => events.length === 1, 'a follower has caught up')
      }
      assert.ok(Math.max(mostPages, pages) <= 64, `${mostPages} followers`)
    })

    it('reads a page once for all that follow from one place, before and after a change', async () => {
      const store = await open()
      const begin = (await store.journalEnd()) as Position
      await createMany(store, 1, 600)
      const reads: string[] = []
      const reader = buildReader({
        ...store,
        async readJournal(after, limit) {
          const page = await store.readJournal(after, limit)
          if (typeof page === 'object' && page.events.length > 0) reads.push(after)
          return page
        },
      })
      const pages = new Set<JournalPage>()
      const followers = Array.from({ length: 100 }, () =>
        follow(reader, begin, (page) => pages.add(page)),
      )
      const haveAll = (count: number) =>
        waitUntil(() => followers.every(({ events }) => events.length === count), `${count} came`)
      await haveAll(600)
      await store.createPlant({ id: 1_000n, name: 'x' })
      await haveAll(601)
      assert.equal(new Set(reads).size, reads.length)
      assert.equal(pages.size, reads.length)
    })

    it('gives what came while nobody followed, to one that stood at the end before', async () => {
      const store = await open()
      await createMany(store, 1, 3)
      let reads = 0
      const reader = buildReader({
        ...store,
        readJournal(...asked) {
          reads++
          return store.readJournal(...asked)
        },
      })
      const first = follow(reader, 'oldest')
      // The second read finds the end, at which the follower waits.
      await waitUntil(() => first.events.length === 3 && reads === 2, 'it has caught up')
      first.leave()
      await first.ended
      await createMany(store, 4, 1)
      const second = follow(reader, first.events.at(-1)?.position as Position)
      await waitUntil(() => second.events.length === 1, 'the change comes')
    })

    it('gives what came after a page was kept, while nobody followed and nothing told', async () => {
      const store = await open()
      const begin = (await store.journalEnd()) as Position
      await createMany(store, 1, 1)
      const reader = buildReader({ ...store, watchJournal: () => () => {} })
      await reader.read(begin)
      await createMany(store, 2, 1)
      const { events } = follow(reader, begin)
      await waitUntil(() => events.length === 2, 'both changes come')
    })

    it('reads pages once for all that begin within one page', async () => {
      const store = await open()
      await createMany(store, 1, 1_000)
      const all = await readAll(store, 1_000)
      const reads: string[] = []
      const reader = buildReader({
        ...store,
        readJournal(after, limit) {
          reads.push(after)
          return store.readJournal(after, limit)
        },
      })
      const followers = all.slice(0, 100).map(({ position }) => follow(reader, position))
      for (const [index, { events }] of followers.entries()) {
        const rest = positions(all.slice(index + 1))
        await waitUntil(() => events.length >= rest.length, 'a follower has caught up')
        assert.deepEqual(positions(events), rest)
      }
      assert.ok(reads.length < 10, `${reads.length} reads`)
    })

    it('misses no change that is made while a page is read', async () => {
      const store = await open()
      let announce = () => {}
      let nextId = 1n
      const reader = buildReader({
        async readJournal(after, limit) {
          const page = await store.readJournal(after, limit)
          if (nextId <= 3n) {
            await store.createPlant({ id: nextId++, name: 'x' })
            announce()
            // Until followers have been told.
            await sleep(30)
          }
          return page
        },
        // A store looks again by itself, later. Here each change is announced once.
        watchJournal(onChange) {
          announce = onChange
          return () => {}
        },
      })
      const { events } = follow(reader, (await store.journalEnd()) as Position)
      await waitUntil(() => events.length === 3, 'every change has come')
    })

    it('wakes the next follower after the last one has left with a change announced', async () => {
      const store = await open()
      let announce = () => {}
      const reader = buildReader({
        ...store,
        watchJournal(onChange) {
          announce = onChange
          return () => {}
        },
      })
      await createMany(store, 1, 1)
      const first = follow(reader, 'oldest')
      await waitUntil(() => first.events.length === 1, 'the first change has come')
      announce()
      first.leave()
      await first.ended
      const second = follow(reader, 'oldest')
      await waitUntil(() => second.events.length === 1, 'it has caught up')
      await createMany(store, 2, 1)
      announce()
      await waitUntil(() => second.events.length === 2, 'the second change has come')
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

    it('keeps no page over a failover, which may have undone its changes', async () => {
      const store = await open()
      const begin = (await store.journalEnd()) as Position
      await createMany(store, 1, 3)
      let session = 1
      let reads = 0
      const reader = buildReader({
        ...store,
        journalSession: () => session,
        readJournal(...asked) {
          reads++
          return store.readJournal(...asked)
        },
      })
      const first = (await reader.read(begin)) as JournalPage
      assert.equal(await reader.read(begin), first)
      session++
      assert.deepEqual(await reader.read(begin), first)
      assert.equal(reads, 2)
      session++
      const within = positions(first.events)[0] as Position
      const { events } = follow(reader, within)
      await waitUntil(() => events.length === 2, 'the rest has come')
      assert.ok(reads > 2)
    })

    it('ends with "gone" after a trim, and keeps no page for the oldest', async () => {
      const store = await open()
      await createMany(store, 1, 2)
      const reader = buildReader(store)
      const first = (await reader.read('oldest')) as JournalPage
      await createMany(store, 3, 2)
      while (!(await store.trimJournal(Date.now() + 60_000)));
      assert.notEqual(((await reader.read('oldest')) as JournalPage).begin, first.begin)
      assert.equal(await follow(reader, first.begin).ended, 'gone')
    })
  })
}
