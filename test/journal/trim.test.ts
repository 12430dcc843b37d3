import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { boundJournal } from '../../src/journal/trim.ts'
import type { Store } from '../../src/store/store.ts'
import { readAll, readPage } from '../store/journal-pages.ts'
import { engines, sqlite } from '../support/engines.ts'
import { holdOpen, untilWaiting } from '../support/locks.ts'
import { startService } from '../support/service.ts'
import { openNewPostgresStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'

const mib = 1024 * 1024

/** Makes each change a commit of its own, however many wait. */
const bounds = { batchItems: 1, queueItems: 10_000 }

async function replace(store: Store, count: number, nameLength: number): Promise<void> {
  const name = 'x'.repeat(nameLength)
  const ids = Array.from({ length: count }, (_, id) => BigInt(id))
  await Promise.all(ids.map((id) => store.replacePlant({ id, name }, {})))
}

async function measureAnew(store: Store): Promise<number> {
  const bound = boundJournal(store, Infinity)
  await bound.keep()
  return bound.measures.bytes
}

for (const engine of engines) {
  describe(`the bound of the journal on ${engine.name}`, () => {
    it('drops the oldest stretches, as many as are beyond it, and never the newest', async () => {
      const store = await engine.open(await engine.newUrl(), bounds)
      await replace(store, 30, 1_000_000)
      const written = await readAll(store, 1_000)
      const end = await store.journalEnd()
      const bound = boundJournal(store, 10 * mib)
      await bound.keep()
      // A stretch has four of them.
      assert.deepEqual(await readAll(store, 1_000), written.slice(-10))
      assert.equal(bound.measures.droppedChanges, 20)
      assert.ok(bound.measures.bytes > 10_000_000 && bound.measures.bytes <= 10 * mib)
      assert.equal(await store.readJournal(written[19]?.position ?? '', 1), 'gone')
      assert.deepEqual(await readAll(store, 1_000, written[20]?.position), written.slice(-9))
      await bound.keep()
      assert.equal(bound.measures.droppedChanges, 20)
      await boundJournal(store, 1).keep()
      assert.equal(await store.journalEnd(), end)
      assert.equal((await readPage(store)).events.length, 1)
      const { last = 0 } = (await store.measureJournal(0)) ?? {}
      assert.equal(await store.dropChanges(last), 1)
      assert.equal(await store.dropChanges(last), 0, 'the newest stays')
    })

    it('measures it while several processes add to it and trim it', async () => {
      const url = await engine.newUrl()
      const [store, other] = [await engine.open(url, bounds), await engine.open(url, bounds)]
      const bound = boundJournal(store, Infinity)
      const requireExact = async () => {
        await bound.keep()
        assert.equal(bound.measures.bytes, await measureAnew(other))
      }
      await replace(store, 1_010, 10)
      await requireExact()
      await replace(other, 500, 1_000)
      await requireExact()
      const { first = 0, last = 0 } = (await store.measureJournal(0)) ?? {}
      await other.dropChanges(first + 10)
      await bound.keep()
      assert.ok(bound.measures.bytes > (await measureAnew(other)), 'the oldest stretch counts')
      await other.dropChanges(last)
      await requireExact()
      await boundJournal(other, 1).keep()
      await requireExact()
      await replace(store, 1_010, 10)
      await requireExact()
      assert.equal(bound.measures.droppedChanges, 0)
    })
  })

  describe(`JOURNAL_MAX on ${engine.name}`, () => {
    it('ends what a follower can read, and tells the operator', async () => {
      const service = await startService(await engine.newUrl(), { env: { JOURNAL_MAX: '16MiB' } })
      const dropped = 'plant_store_journal_dropped_changes_total'
      const size = 'plant_store_journal_size_bytes'
      await service.create('{"id":1,"name":"first"}')
      const first = JSON.parse((await service.call({ path: '/events' })).body)[0]
      assert.equal(await service.sample(dropped), 0)
      const name = 'x'.repeat(1_000_000)
      for (let count = 1; count <= 24; count++) {
        await service.store.replacePlant({ id: 1n, name }, {})
      }
      const isBounded = async () => {
        const metrics = await service.scrape()
        const bytes = metrics.get(size) ?? 0
        return (metrics.get(dropped) ?? 0) >= 9 && bytes > 12 * mib && bytes <= 16 * mib
      }
      await waitUntil(isBounded, 'changes are dropped')
      const answer = await service.call({ path: `/events?after=${first.position}` })
      assert.deepEqual([answer.status, JSON.parse(answer.body).error], [410, 41000])
      const isTold = () => service.log.some((line) => line.includes('has reached JOURNAL_MAX'))
      await waitUntil(isTold, 'the log says so')
    })
  })
}

describe('a service whose journal is off', () => {
  const off = { JOURNAL_KEEP: 'off' }

  it('deletes the rest of it a minute after a failure', async (test) => {
    const url = await sqlite.newUrl()
    const first = await sqlite.open(url, bounds)
    await replace(first, 1_200, 1)
    await first.close()
    const store = await sqlite.open(url, { journaling: 'off' })
    let trims = 0
    const failing: Store = {
      ...store,
      trimJournal: (before) =>
        ++trims === 2 ? Promise.reject(new Error('locked')) : store.trimJournal(before),
    }
    test.mock.timers.enable({ apis: ['setTimeout'] })
    await startService(url, { store: failing, env: off })
    test.mock.timers.tick(60_000)
    test.mock.timers.reset()
    const isDeleted = async () => {
      const left = await store.measureJournal(0)
      return left?.first === left?.last
    }
    await waitUntil(isDeleted, 'only the last row is left')
  })

  it('leaves it alone once another process has switched it on', async () => {
    const url = await sqlite.newUrl()
    const store = await sqlite.open(url, bounds)
    await replace(store, 3, 1)
    const service = await startService(url, { store, env: off })
    await service.close()
    const again = await sqlite.open(url)
    assert.equal((await readAll(again, 10)).length, 3)
  })
})

describe('the bound of the journal on PostgreSQL', () => {
  it('counts no change that another process drops at the same moment', async () => {
    const { url, store } = await openNewPostgresStore(bounds)
    await replace(store, 30, 100)
    const { first = 0 } = (await store.measureJournal(0)) ?? {}
    const deletion = `DELETE FROM plant_store.journal WHERE seq <= ${first + 5}`
    const other = await holdOpen(url, deletion)
    const dropping = store.dropChanges(first + 5)
    await untilWaiting(url)
    await other.query('COMMIT')
    assert.equal(await dropping, 0)
  })
})
