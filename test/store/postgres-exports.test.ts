import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { newDatabaseWith } from '../support/databases.ts'
import { postgres } from '../support/engines.ts'
import { query } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { everything, openPostgresStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'

const count = 8_000

describe('a walk through plants whose reader is slow', () => {
  /** A store with more plants than sockets and buffers hold. */
  async function openFilled(url: string, answerTimeoutMs: number): Promise<Store> {
    const store = await openPostgresStore(url, { answerTimeoutMs })
    await query(
      url,
      `INSERT INTO plant_store.plants
       SELECT id, repeat('x', 1000), NULL, 1 FROM generate_series(1, ${count}) AS id`,
    )
    return store
  }

  it('delays no other read, and continues to its end', async () => {
    const store = await openFilled(await postgres.newUrl(), 60_000)
    const snapshot = await store.openSnapshot()
    releaseAfterTest(snapshot.close)
    const ids: bigint[] = []
    for await (const piece of snapshot.walkPlants(everything)) {
      assert.ok(piece.length < count / 2)
      ids.push(...piece.map(({ id }) => id))
      assert.equal((await store.listPlants({ ...everything, limit: 1 })).plants.length, 1)
      assert.equal((await store.getPlant(1n))?.id, 1n)
    }
    const all = Array.from({ length: count }, (_, index) => BigInt(index + 1))
    assert.deepEqual(ids, all)
  })

  it('gives its connection back when it is broken off', async () => {
    const url = await postgres.newUrl()
    const store = await openFilled(url, 60_000)
    const snapshot = await store.openSnapshot()
    const walk = snapshot.walkPlants(everything)[Symbol.asyncIterator]()
    const pieces = [walk.next(), walk.next()]
    await Promise.all([snapshot.close(), Promise.allSettled(pieces)])
    const open = `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()`
    await waitUntil(async () => (await query(url, open)).length === 0, 'no transaction is left')
  })

  it('is not cut, however short the transactions of the server are', async () => {
    const known = "SELECT FROM pg_settings WHERE name = 'transaction_timeout'"
    const [hasTimeout] = await query(await postgres.newUrl(), known)
    const url = await newDatabaseWith(hasTimeout ? { transaction_timeout: '2000' } : {})
    // The server ends other transactions that wait this long for their next statement.
    const store = await openFilled(url, 2_000)
    const snapshot = await store.openSnapshot()
    releaseAfterTest(snapshot.close)
    const late = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND
      xact_start < clock_timestamp() - interval '3 s' AND pid <> pg_backend_pid()`
    let found = 0
    for await (const piece of snapshot.walkPlants(everything)) {
      if (found === 0)
        await waitUntil(async () => (await query(url, late)).length > 0, 'it is late')
      found += piece.length
    }
    assert.equal(found, count)
  })
})
