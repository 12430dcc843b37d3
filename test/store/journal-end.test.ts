import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { shareRuns } from '../../src/store/postgres/journal.ts'
import { type Position, type Store, toPlant } from '../../src/store/store.ts'
import { postgres } from '../support/engines.ts'
import { openClient, query } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'

/** A transaction that has drawn a number and does not commit yet. */
async function openWriter(url: string) {
  const client = await openClient(url)
  releaseAfterTest(() => client.end())
  await client.query("BEGIN; SELECT nextval('plant_store.journal_seq')")
  return client
}

async function readIds(store: Store, after: Position): Promise<bigint[]> {
  const page = await store.readJournal(after, 100)
  assert.ok(typeof page === 'object')
  return page.events.map((event) => toPlant(event).id)
}

const connections = `SELECT FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()`

describe('the end of the journal on PostgreSQL', () => {
  it('is awaited on one connection, however many callers there are', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    await openWriter(url)
    await store.createPlant({ id: 1n, name: 'not settled' })
    const before = (await query(url, connections)).length
    const ends = Array.from({ length: 64 }, () => store.journalEnd())
    for (const end of await Promise.allSettled(ends)) {
      assert.ok(end.status === 'rejected')
      assert.equal(end.reason.number, 50301)
    }
    assert.equal((await query(url, connections)).length - before, 1)
  })

  it('is after what was acknowledged while another caller was waiting', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    const first = await openWriter(url)
    await store.createPlant({ id: 1n, name: 'seen by both' })
    const early = store.journalEnd().catch(() => undefined)
    const asked = `${connections} AND query LIKE '%journal_seq%RowExclusiveLock%'`
    await waitUntil(async () => (await query(url, asked)).length > 0, 'the first caller waits')
    const second = await openWriter(url)
    await store.createPlant({ id: 2n, name: 'seen by the second' })
    const late = store.journalEnd().catch(() => undefined)
    await first.query('ROLLBACK')
    await early
    await second.query('ROLLBACK')
    // On a busy machine the wait may have been too long.
    const end = (await late) ?? (await store.journalEnd())
    assert.deepEqual(await readIds(store, end as Position), [])
  })
})

describe('a shared run', () => {
  it('serves all that came before it began, and nobody that came later', async () => {
    const runs: PromiseWithResolvers<number>[] = []
    const call = shareRuns(() => {
      const run = Promise.withResolvers<number>()
      runs.push(run)
      return run.promise
    })
    const first = [call(), call()]
    await waitUntil(() => runs.length === 1, 'the first run has begun')
    const second = [call(), call()]
    runs[0]?.resolve(1)
    assert.deepEqual(await Promise.all(first), [1, 1])
    await waitUntil(() => runs.length === 2, 'the second run has begun')
    runs[1]?.resolve(2)
    assert.deepEqual(await Promise.all(second), [2, 2])
    assert.equal(runs.length, 2)
  })

  it('begins after one that failed, which fails for its own callers only', async () => {
    let runs = 0
    const call = shareRuns(async () => {
      if (runs++ === 0) throw new Error('the first')
      return runs
    })
    const first = call()
    await assert.rejects(first, { message: 'the first' })
    assert.equal(await call(), 2)
  })
})
