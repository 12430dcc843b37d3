import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { readPage } from '../store/journal-pages.ts'
import { pgbouncerMissing, startPgBouncer } from '../support/pgbouncer.ts'
import { query } from '../support/postgres.ts'
import { openPostgresStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { signalServer, startPair } from './lab/replication.ts'

const count = 200
const everything = { after: undefined, tag: undefined, limit: 1_000 }
const ids = (from: number) => Array.from({ length: count }, (_, index) => BigInt(from + index))

async function create(store: Store, from: number): Promise<void> {
  const made = await Promise.all(ids(from).map((id) => store.createPlant({ id, name: `${id}` })))
  assert.ok(made.every((version) => typeof version === 'bigint'))
}

async function listIds(store: Store): Promise<bigint[]> {
  return (await store.listPlants(everything)).plants.map(({ id }) => id)
}

it('a store behind PgBouncer in transaction mode works, also after a failover of its server', {
  skip: pgbouncerMissing,
}, async () => {
  const pair = await startPair('synchronous')
  const pooler = await startPgBouncer(pair.primary.port)
  const store = await openPostgresStore(`${pooler.url}?prepare=false&connect_timeout=1`)
  await create(store, 0)
  const key = { tokenId: 'tok', key: 'one' }
  const once = await store.createPlantOnce({ id: 10_000n, name: 'once' }, key)
  assert.ok(typeof once === 'object' && !once.isReplay)
  assert.equal(await store.deletePlant(10_000n, {}), 'deleted')
  assert.deepEqual(await listIds(store), ids(0))
  assert.equal((await readPage(store)).events.length, count + 2)
  const snapshot = await store.openSnapshot()
  const walked = await Array.fromAsync(snapshot.walkPlants(everything))
  await snapshot.close()
  const walkedIds = walked.flat().map(({ id }) => id)
  assert.deepEqual(walkedIds, ids(0))

  signalServer(pair.primary, 'SIGKILL')
  await query(pair.standby.toUrl('postgres'), 'SELECT pg_promote()')
  pooler.redirect(pair.standby.port)
  // A read may be answered while the writers still have to notice.
  const answers = async () => {
    assert.equal(await store.deletePlant(-1n, {}), 'absent')
    return (await listIds(store)).length === count
  }
  await waitUntil(() => answers().catch(() => false), 'the store answers again')
  await create(store, count)
  assert.deepEqual(await listIds(store), [...ids(0), ...ids(count)])
  assert.equal((await readPage(store)).events.length, 2 * count + 2)
})
