import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Host, toAddress } from '../../src/store/postgres/address.ts'
import { openConnection } from '../../src/store/postgres/connection.ts'
import { listPlants } from '../../src/store/postgres/pages.ts'
import type { ReceiverStore } from '../../src/store/receivers.ts'
import type { ListQuery, Store } from '../../src/store/store.ts'
import { postgres } from '../support/engines.ts'
import { countCalls, fillWithTraps } from '../support/hostile-schema.ts'
import { newRole, query } from '../support/postgres.ts'
import { openProxy } from '../support/proxy.ts'
import { newDelivery, newReceiver, newSaved, newTaken } from '../support/receiver-record.ts'
import { isRefusal } from '../support/refusal.ts'
import { everything, openPostgresStore as open } from '../support/stores.ts'
import { newTokenRecord } from '../support/token-record.ts'
import { waitUntil } from '../support/wait.ts'

const token = newTokenRecord({ id: 'one', hash: Buffer.alloc(32, 1), name: 'One' })

/** Runs every operation of a store at least once, each statement of the engine included. */
async function useEverything(opened: Store): Promise<void> {
  const { store, unused } = watchUses(opened)
  const isFirst = await store.addFirstToken({ ...token, id: 'first', hash: Buffer.alloc(32) })
  assert.equal(isFirst, 'added')
  await store.createPlant({ id: 1n, name: 'Aloe', tag: 'herb' })
  const ids = Array.from({ length: 10 }, (_, index) => BigInt(index))
  await Promise.all(ids.map((id) => store.createPlant({ id, name: 'Basil', tag: 'herb' })))
  const key = { tokenId: 'first', key: 'key' }
  await store.createPlantOnce({ id: 20n, name: 'Cress' }, key)
  await Promise.all([
    store.createPlantOnce({ id: 20n, name: 'Cress' }, key),
    store.replacePlant({ id: 1n, name: 'Aloe', tag: 'x'.repeat(3_000) }, {}),
    store.replacePlant({ id: 21n, name: 'x'.repeat(600_000), tag: 'herb' }, {}),
    store.replacePlant({ id: 22n, name: 'x'.repeat(600_000), tag: 'herb' }, {}),
    store.deletePlant(2n, {}),
  ])
  const imported = [3n, 4n, 30n].map((id) => ({ id, name: 'Dill' }))
  assert.deepEqual(await store.importPlants(imported, 'replace'), [
    'replaced',
    'replaced',
    'stored',
  ])
  assert.equal((await store.getPlant(3n))?.name, 'Dill')
  for (const tag of [undefined, 'herb', 'x'.repeat(3_000)]) {
    for (const after of [undefined, 0n]) {
      assert.notEqual((await store.listPlants({ after, tag, limit: 100 })).plants.length, 0)
      const back = { after: undefined, tag, order: 'desc', limit: 100 } as const
      assert.notEqual((await store.listPlants(back)).plants.length, 0)
    }
  }
  const snapshot = await store.openSnapshot()
  try {
    for (const tag of [undefined, 'herb']) {
      const walked = await Array.fromAsync(
        snapshot.walkPlants({ ...everything, after: -(2n ** 63n), tag }),
      )
      assert.notEqual(walked.length, 0)
      assert.notEqual(await snapshot.countPlants(tag), 0)
    }
    assert.equal((await snapshot.listTokens()).length, 1)
  } finally {
    await snapshot.close()
  }
  await store.addToken(token)
  assert.equal((await store.findToken(token.hash))?.id, 'one')
  await store.noteTokenUses([{ id: 'one', at: 5 }])
  assert.equal(await store.revokeToken('one', 6), 'revoked')
  assert.equal((await store.listTokens()).length, 2)
  assert.equal(await store.tokenRevision(), 1n)
  assert.equal(await store.deleteTokens(['one']), 1)
  assert.equal(await store.forgetKeys(Date.now() + 1), true)
  const stopWatching = store.watchJournal(() => {})
  // Some of these ids are taken.
  await Promise.all([5n, 40n, 6n, 41n].map((id) => store.createPlant({ id, name: 'Elder' })))
  stopWatching()
  const page = await store.readJournal('oldest', 1_000)
  assert.ok(typeof page === 'object' && page.events.length > 0)
  assert.notEqual(await store.readJournal(page.end, 1_000), 'gone')
  assert.notEqual(await store.journalEnd(), page.begin)
  assert.notEqual(await store.newestPosition(), page.begin)
  const { last = 0 } = (await store.measureJournal(0)) ?? {}
  assert.notEqual(await store.dropChanges(last - 1), 0)
  while (!(await store.trimJournal(Date.now() + 60_000)));
  assert.ok(await store.measure())
  await useReceivers(store.receivers)
  assert.deepEqual([...unused], ['journalSession', 'isFull', 'ping', 'close'])
}

async function useReceivers(opened: ReceiverStore): Promise<void> {
  const { store, unused } = watchUses(opened)
  await store.add(newReceiver())
  const [claim] = await store.claim('owner', 60_000)
  assert.ok(claim)
  const deliveries = ['p1', 'p2', 'p3'].map((position) => newDelivery({ position }))
  const taken = newTaken({ ...claim, deliveries, gap: 'a gap' })
  assert.equal(await store.take('owner', taken), true)
  const failed = [newDelivery(), newDelivery({ position: 'p2', dueAt: undefined })]
  const saved = newSaved({ ...claim, done: ['p3'], failed, pause: 'a pause' })
  assert.equal(await store.save('owner', saved), true)
  const waiting = await store.listDeliveries('whk_1', 'waiting')
  const bodies = waiting.map(({ body }) => body)
  assert.deepEqual(bodies, [newDelivery().body])
  assert.equal((await store.listBacklogs())[0]?.changes, 1)
  assert.equal(await store.retryFailures('whk_1', 1), 1)
  await store.addDelivery('whk_1', newDelivery())
  const { secrets } = newReceiver()
  await store.change('whk_1', { kind: 'set secrets', secrets })
  await store.change('whk_1', { kind: 'resume' })
  await store.release('owner')
  assert.equal((await store.list()).length, 1)
  assert.notEqual(await store.revision(), 0n)
  assert.equal(await store.remove('whk_1'), 'removed')
  assert.deepEqual([...unused], [])
}

/** The same store, and which of its methods have not been called. */
function watchUses<Watched extends object>(opened: Watched) {
  const unused = new Set(Object.keys(opened))
  const store = new Proxy(opened, {
    get(target, name) {
      unused.delete(String(name))
      return Reflect.get(target, name)
    },
  })
  return { store, unused }
}

/**
 * A database with a role for the service, and traps in every schema where its names may be looked
 * for. `pooled` is its address behind a pooler that does not pass `search_path` on.
 */
async function newHostileDatabase() {
  const admin = `${await postgres.newUrl()}?search_path=pg_catalog`
  const { pathname, hostname, port } = new URL(admin)
  const toRights = (role: string) => `GRANT CREATE ON DATABASE ${pathname.slice(1)} TO ${role}`
  const [url = ''] = (await newRole(admin, toRights)).split('?')
  const role = new URL(url).username
  await fillWithTraps(admin, 'public')
  await fillWithTraps(admin, role)
  const pooler = await openProxy(hostname, Number(port), 'search_path=')
  return { admin, role, url, pooled: pooler.toUrl(url) }
}

async function useEverythingAt(url: string): Promise<void> {
  const first = await open(url)
  await useEverything(first)
  await first.close()
  for (const journaling of ['off', 'on'] as const) {
    const store = await open(url, { journaling })
    assert.equal(await store.createPlant({ id: 1n, name: 'Aloe' }), 'exists')
    await store.close()
  }
}

describe('objects of other users of the database', () => {
  it('are called when a statement is careless', async () => {
    const hostile = await newHostileDatabase()
    await assert.rejects(query(hostile.url, "SELECT decode('tag', 0)"), /a trap was called/)
    assert.equal(await countCalls(hostile.admin), 1)
  })

  it('are not called, though ALTER ROLE has them searched first, by statements without a name', async () => {
    const hostile = await newHostileDatabase()
    const path = '"$user", public, pg_catalog'
    await query(hostile.admin, `ALTER ROLE ${hostile.role} SET search_path = ${path}`)
    await useEverythingAt(`${hostile.url}?prepare=false`)
    assert.equal(await countCalls(hostile.admin), 0)
  })

  it('are not called behind a pooler that does not pass search_path on', async () => {
    const hostile = await newHostileDatabase()
    await useEverythingAt(hostile.pooled)
    assert.equal(await countCalls(hostile.admin), 0)
  })

  it('are not served behind such a pooler while a setting has them searched first', async () => {
    const hostile = await newHostileDatabase()
    await query(hostile.admin, `ALTER ROLE ${hostile.role} SET search_path = public, pg_catalog`)
    await assert.rejects(open(hostile.pooled), isRefusal(/^The search_path of /))
    assert.equal(await countCalls(hostile.admin), 0)
  })
})

describe('plants by tag', () => {
  /** Tags with one value of `hashtextextended(tag, 0)`: its second block undoes the first. */
  const colliding = [
    '---------23eTa\x15zS\x1C\x10\x15]kj8',
    '---------2neodgt`\x1EJ#p|o^',
    '---------cu1K/A4+\x7Fe]d\x1FS6',
    '---------f382J5\t\x04,V\x1Fd`!*',
    '---------i0mT\x169x\x11Q\x16\x03~@\x1D\x0F',
    '---------je9\\5$E(+\r`84\x13\x0F',
  ]

  it('are read without those of other tags, whatever an attacker calls them', async () => {
    const tags = [
      ...colliding,
      ...Array.from({ length: 300 }, (_, index) => `${'x'.repeat(5_000)}${index}`),
    ]
    await using plants = await openPlants()
    const { sql } = plants
    await sql`INSERT INTO plant_store.plants SELECT row_number() OVER (), 'x', tag, 1
      FROM unnest(${tags}::text[]) AS tag`
    const [row] = await sql`SELECT count(DISTINCT hashtextextended(tag, 0)) AS hashes
      FROM plant_store.plants WHERE id <= ${colliding.length}`
    assert.equal(row?.hashes, '1')
    for (const index of [3, 150]) {
      const page = await plants.list({ after: undefined, tag: tags[index], limit: 100 })
      assert.deepEqual(page, { first: BigInt(index + 1), found: 1, read: 1 })
    }
  })

  it('are read as one stretch of the index, few or many, wherever their ids are', async () => {
    await using plants = await openPlants()
    const { sql } = plants
    await sql`INSERT INTO plant_store.plants SELECT id, 'x',
        CASE WHEN id > 25000 THEN 'many' WHEN id % 100 = 7 THEN 'few' END, 1
      FROM generate_series(1, 50000) AS id`
    for (const state of ['new', 'analyzed']) {
      if (state === 'analyzed') await sql`ANALYZE plant_store.plants`
      // More often than PostgreSQL makes a plan for each execution of a statement.
      for (let round = 0; round < 8; round++) {
        assert.deepEqual(await plants.list({ after: undefined, tag: 'many', limit: 100 }), {
          first: 25_001n,
          found: 100,
          read: 100,
        })
        assert.deepEqual(await plants.list({ after: 20_000n, tag: 'few', limit: 100 }), {
          first: 20_007n,
          found: 50,
          read: 50,
        })
        const back = { after: undefined, order: 'desc', limit: 100 } as const
        const many = { first: 50_000n, found: 100, read: 100 }
        assert.deepEqual(await plants.list({ ...back, tag: 'many' }), many)
        const last = await plants.list({ ...back, tag: undefined })
        // The planner may look at the end of the index.
        assert.ok(last.first === 50_000n && last.read <= 101, `${last.read} rows`)
        const few = { first: 19_907n, found: 100, read: 100 }
        assert.deepEqual(await plants.list({ ...back, after: 20_000n, tag: 'few' }), few)
      }
    }
  })
})

describe('a store that was small', () => {
  it('is read by its indexes when it has grown', async () => {
    const url = await postgres.newUrl()
    await (await open(url)).close()
    const before = await countScans(url)
    const store = await open(url)
    let nextId = 1_000_000n
    async function useStore() {
      // More often than PostgreSQL makes a plan for each execution of a statement.
      for (let round = 0; round < 8; round++) {
        const plants = [nextId++, nextId++].map((id) => ({ id, name: '' }))
        await Promise.all(plants.map((plant) => store.createPlant(plant)))
        await Promise.all(plants.map((plant) => store.replacePlant(plant, {})))
        await Promise.all(plants.map(({ id }) => store.getPlant(id)))
        await store.listPlants({ ...everything, limit: 10 })
      }
    }
    const grow = (from: number, to: number) => `INSERT INTO plant_store.plants
      SELECT id, 'x', NULL, 1 FROM generate_series(${from}, ${to}) AS id`
    await query(url, `${grow(1, 60)}; ANALYZE plant_store.plants`)
    await useStore()
    await query(url, grow(61, 5_000))
    await useStore()
    await store.close()
    assert.equal(await countScans(url), before)
  })
})

/** How often all plants were read. A connection tells when it ends. */
async function countScans(url: string): Promise<number> {
  const others = `SELECT FROM pg_stat_activity WHERE datname = current_database()
    AND backend_type = 'client backend' AND pid <> pg_backend_pid()`
  await waitUntil(async () => (await query(url, others)).length === 0, 'all connections end')
  const scans = `SELECT seq_scan AS scans FROM pg_stat_user_tables WHERE relname = 'plants'`
  const [row] = await query<{ scans: string }>(url, scans)
  return Number(row?.scans)
}

/**
 * The table of plants of a new store, and pages of it with the number of rows that the server read
 * for them.
 */
async function openPlants() {
  const url = await postgres.newUrl()
  await (await open(url)).close()
  const address = toAddress(url)
  const [at] = address.hosts as [Host]
  const { sql, end } = await openConnection(address, at, 'none')

  async function countReads(): Promise<number> {
    const [row] = await sql`SELECT seq_tup_read + idx_tup_fetch AS rows
      FROM pg_stat_xact_user_tables WHERE relname = 'plants'`
    return Number(row?.rows)
  }

  return {
    sql,
    async list(query: ListQuery) {
      await sql`BEGIN`
      const before = await countReads()
      const { plants } = await listPlants(sql, query)
      const read = (await countReads()) - before
      await sql`COMMIT`
      return { first: plants[0]?.id, found: plants.length, read }
    },
    [Symbol.asyncDispose]: () => end(0),
  }
}
