import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { boundJournal, rowsPerStretch } from '../../src/journal/bound.ts'
import type { Store } from '../../src/store/store.ts'
import { readAll, readPage } from '../store/journal-pages.ts'
import { engines, postgres, sqlite } from '../support/engines.ts'
import { parseMetrics } from '../support/metrics.ts'
import { openClient, query } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { startService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'

const mib = 1024 * 1024
const anyState = { match: undefined, noneMatch: undefined }

/** Makes each change a commit of its own, however many wait. */
const bounds = { batchItems: 1, queueItems: 10_000 }

async function replace(store: Store, count: number, nameLength: number): Promise<void> {
  const name = 'x'.repeat(nameLength)
  const ids = Array.from({ length: count }, (_, id) => BigInt(id))
  await Promise.all(ids.map((id) => store.replacePlant({ id, name }, anyState)))
}

async function measureAnew(store: Store): Promise<number> {
  const bound = boundJournal(store, Infinity)
  await bound.keep()
  return bound.measures.bytes
}

for (const engine of engines) {
  describe(`the bound of the journal on ${engine.name}`, () => {
    it('drops the oldest changes, as many as are beyond it, and never the last', async () => {
      const store = await engine.open(await engine.newUrl(), bounds)
      await replace(store, 30, 100_000)
      const written = await readAll(store, 1_000)
      const end = await store.journalEnd()
      const bound = boundJournal(store, mib)
      await bound.keep()
      const left = await readAll(store, 1_000)
      assert.deepEqual(left, written.slice(-10))
      assert.equal(bound.measures.droppedChanges, 20)
      assert.ok(bound.measures.bytes > mib - 101_000 && bound.measures.bytes <= mib)
      assert.equal(await store.readJournal(written[19]?.position ?? '', 1), 'gone')
      assert.equal((await readPage(store, written[20]?.position)).events.length, 9)
      await bound.keep()
      assert.equal(bound.measures.droppedChanges, 20)
      await boundJournal(store, 1).keep()
      assert.equal(await store.journalEnd(), end)
      assert.equal((await readPage(store)).events.length, 1)
    })
  })
}

for (const engine of engines) {
  describe(`the size of the journal on ${engine.name}`, () => {
    it('is known while several processes add to it and trim it', async () => {
      const url = await engine.newUrl()
      const [store, other] = [await engine.open(url, bounds), await engine.open(url, bounds)]
      const bound = boundJournal(store, Infinity)
      await replace(store, rowsPerStretch * 2 + 10, 10)
      await bound.keep()
      assert.equal(bound.measures.bytes, await measureAnew(other))
      await replace(other, 500, 1_000)
      await bound.keep()
      assert.equal(bound.measures.bytes, await measureAnew(other))
      // Within the oldest stretch, then beyond it, then all but the last row.
      for (const bytes of [10_000, 200_000, 10 * mib]) {
        const most = (await measureAnew(other)) - bytes
        await boundJournal(other, most).keep()
        await bound.keep()
        assert.equal(bound.measures.bytes, await measureAnew(other))
        assert.ok(bound.measures.bytes <= Math.max(most, 2_000), String(bound.measures.bytes))
      }
      await replace(store, rowsPerStretch, 10)
      await bound.keep()
      assert.equal(bound.measures.bytes, await measureAnew(other))
      assert.equal(bound.measures.droppedChanges, 0)
    })
  })

  describe(`JOURNAL_MAX on ${engine.name}`, () => {
    it('ends what a follower can read, and tells the operator', async () => {
      const service = await startService(await engine.newUrl(), { env: { JOURNAL_MAX: '16MiB' } })
      const scrape = async () => parseMetrics((await service.call({ path: '/metrics' })).body)
      const dropped = 'plant_store_journal_dropped_changes_total'
      const size = 'plant_store_journal_size_bytes'
      await service.create('{"id":1,"name":"first"}')
      const first = JSON.parse((await service.call({ path: '/events' })).body)[0]
      assert.equal((await scrape()).get(dropped), 0)
      const name = 'x'.repeat(1_000_000)
      for (let count = 1; count <= 24; count++) {
        await service.store.replacePlant(
          { id: 1n, name },
          { match: undefined, noneMatch: undefined },
        )
      }
      await waitUntil(async () => (await scrape()).get(dropped) === 9, 'changes are dropped')
      const bytes = (await scrape()).get(size) ?? 0
      assert.ok(bytes > 15 * mib && bytes <= 16 * mib, String(bytes))
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
    const isDeleted = async () => (await store.measureJournal(0, 2 ** 40)).rows === 1
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
    const url = await postgres.newUrl()
    const store = await postgres.open(url, bounds)
    await replace(store, 30, 100)
    const { first } = await store.measureJournal(0, Number.MAX_SAFE_INTEGER)
    const other = await openClient(url)
    releaseAfterTest(() => other.end())
    await other.query(`BEGIN; DELETE FROM plant_store.journal WHERE seq <= ${first + 5}`)
    const dropping = store.dropChanges(first, 500)
    const waiting = `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event = 'transactionid'`
    await waitUntil(async () => (await query(url, waiting)).length > 0, 'the drop waits')
    await other.query('COMMIT')
    assert.equal(await dropping, 0)
  })
})
