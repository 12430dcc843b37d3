import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { postgres } from '../support/engines.ts'
import { openClient, query } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { openPostgresStore as open } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'

/** Resolves when two writes wait for a lock in the server. */
function waitForTwoLocked(url: string): Promise<void> {
  const locked = `SELECT FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database()`
  return waitUntil(async () => (await query(url, locked)).length === 2, 'two wait for the lock')
}

describe('two processes that write to one PostgreSQL at once', () => {
  it('commit two batches with the same ids in different orders', async () => {
    const url = await postgres.newUrl()
    const [one, two] = [await open(url), await open(url)]
    for (let round = 0; round < 20; round++) {
      const ids = Array.from({ length: 50 }, (_, index) => BigInt(round * 50 + index))
      const outcomes = await Promise.all([
        ...ids.map((id) => one.createPlant({ id, name: '' })),
        ...ids.toReversed().map((id) => two.createPlant({ id, name: '' })),
      ])
      assert.equal(outcomes.filter((outcome) => outcome === 'exists').length, 50)
    }
  })

  it('commit two batches with the same keys in different orders, each key once', async () => {
    const url = await postgres.newUrl()
    const [one, two] = [await open(url), await open(url)]
    const create = (store: Store, id: bigint) =>
      store.createPlantOnce({ id, name: '' }, { tokenId: 'tok', key: `${id}` })
    for (let round = 0; round < 20; round++) {
      const ids = Array.from({ length: 50 }, (_, index) => BigInt(round * 50 + index))
      const outcomes = await Promise.all([
        ...ids.map((id) => create(one, id)),
        ...ids.toReversed().map((id) => create(two, id)),
      ])
      const replays = outcomes.map((one) => (typeof one === 'string' ? one : one.isReplay))
      assert.deepEqual(replays.toSorted(), [...Array(50).fill(false), ...Array(50).fill(true)])
    }
  })

  it('replace a plant once, though two have read the same ETag of it', async () => {
    const url = await postgres.newUrl()
    const [one, two] = [await open(url), await open(url)]
    const version = await one.createPlant({ id: 1n, name: '' })
    assert.ok(typeof version === 'bigint')
    const client = await openClient(url)
    releaseAfterTest(() => client.end())
    await client.query('BEGIN; SELECT FROM plant_store.plants FOR UPDATE')
    const replaced = [one, two].map((store) =>
      store.replacePlant({ id: 1n, name: 'x' }, { match: [version] }),
    )
    await waitForTwoLocked(url)
    await client.query('COMMIT')
    const outcomes = await Promise.all(replaced)
    assert.equal(outcomes.filter((outcome) => outcome === 'condition failed').length, 1)
  })

  it('store one plant for a key that two use at once, beside other writes', async () => {
    const url = await postgres.newUrl()
    const [one, two] = [await open(url), await open(url)]
    const release = await postgres.block(url)
    const used = [one, two].map(async (store, index) => {
      const id = BigInt(index)
      const [created] = await Promise.all([
        store.createPlantOnce({ id, name: '' }, { tokenId: 'tok', key: 'key' }),
        store.replacePlant({ id: id + 2n, name: '' }, {}),
      ])
      return created
    })
    await waitForTwoLocked(url)
    await release()
    const outcomes = await Promise.all(used)
    assert.equal(outcomes.filter((outcome) => outcome === 'key reused').length, 1)
  })
})
