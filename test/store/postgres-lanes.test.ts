import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Host, toAddress } from '../../src/store/postgres/address.ts'
import { openConnection } from '../../src/store/postgres/connection.ts'
import { buildLane, type Lane } from '../../src/store/postgres/lane.ts'
import { openPrimary } from '../../src/store/postgres/primary.ts'
import { pageConnections, readDepth } from '../../src/store/postgres/session.ts'
import type { Sql } from '../../src/store/postgres/sql.ts'
import { buildPostgresStore } from '../../src/store/postgres/store.ts'
import type { Store } from '../../src/store/store.ts'
import { postgres } from '../support/engines.ts'
import { openClient, query } from '../support/postgres.ts'
import { newReceiver } from '../support/receiver-record.ts'
import { releaseAfterTest, runOnce } from '../support/release.ts'
import { authorized, startService } from '../support/service.ts'
import { closeAfterTest } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'

const quiet = { onLost() {}, onFound() {} }
const page = { after: undefined, tag: undefined, limit: 10 }
const token = {
  id: 'one',
  hash: Buffer.alloc(32, 1),
  name: 'One',
  scopes: [],
  createdAt: 1,
  expiresAt: undefined,
  revokedAt: undefined,
  lastUsedAt: undefined,
  lastFour: undefined,
}

/** Opens a store whose answers are waited for this long. It is closed with the test. */
async function openStore(answerTimeoutMs: number) {
  const url = await postgres.newUrl()
  const primary = await openPrimary(url, quiet, { answerTimeoutMs })
  return { url, primary, store: closeAfterTest(buildPostgresStore(primary)) }
}

/** Makes every statement on a table wait until the lock is released or the test ends. */
async function lock(url: string, table: 'plants' | 'tokens') {
  const client = await openClient(url)
  await client.query(`BEGIN; LOCK TABLE plant_store.${table} IN ACCESS EXCLUSIVE MODE`)
  const release = runOnce(() => client.end())
  releaseAfterTest(release)
  return { release }
}

/** Resolves when this many statements of the store wait for a lock. */
function untilWaiting(url: string, count: number): Promise<void> {
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database()
    AND application_name = 'plant-store' AND wait_event_type = 'Lock'`
  return waitUntil(
    async () => (await query(url, waiting)).length === count,
    `${count} statements wait for a lock`,
  )
}

/** Holds one connection of a lane until it is released. */
function hold(lane: Lane | undefined, released: Promise<void>) {
  const { promise: started, resolve } = Promise.withResolvers<void>()
  const ended = lane?.run(() => {
    resolve()
    return released
  }, 60_000)
  return { started, ended }
}

/** Asks for as many lists as may wait, and as many more as may have been sent at once. */
function fillQueue(store: Store) {
  const length = 1_000 + pageConnections * readDepth
  return Promise.allSettled(Array.from({ length }, () => store.listPlants({ ...page, limit: 1 })))
}

describe('a read of PostgreSQL', () => {
  it('ends in the server with its time, and the next is answered', async () => {
    const { url, store } = await openStore(1_000)
    for (let round = 0; round < 2; round++) {
      const plants = await lock(url, 'plants')
      const reads = [store.listPlants(page), store.getPlant(1n)]
      await Promise.all(reads.map((read) => assert.rejects(async () => read, { number: 50301 })))
      await untilWaiting(url, 0)
      await plants.release()
      assert.deepEqual((await store.listPlants(page)).plants, [])
      assert.equal(await store.getPlant(1n), undefined)
    }
  })

  it('is refused at once with 50300 when too many wait, while a get is served', async () => {
    const { primary, store } = await openStore(60_000)
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    releaseAfterTest(release)
    const running = Array.from({ length: pageConnections }, () =>
      hold(primary.session()?.pages, released),
    )
    await Promise.all(running.map(({ started }) => started))
    const waiting = fillQueue(store)
    await assert.rejects(store.listPlants(page), { number: 50300 })
    assert.equal(await store.getPlant(1n), undefined)
    assert.equal(await store.tokenRevision(), 0n)
    release()
    await Promise.all(running.map(({ ended }) => ended))
    const served = (await waiting).filter(({ status }) => status === 'fulfilled')
    assert.ok(served.length >= 1_000, `${served.length} of those that waited were served`)
  })

  it('is refused over HTTP with 503 and Retry-After', async () => {
    const { url, store } = await openStore(60_000)
    const service = await startService(url, { store })
    const plants = await lock(url, 'plants')
    const running = Array.from({ length: pageConnections }, () => store.listPlants(page))
    await untilWaiting(url, pageConnections)
    const waiting = fillQueue(store)
    const answer = await service.call({ path: '/plants' })
    assert.equal(answer.status, 503)
    assert.equal(JSON.parse(answer.body).error, 50300)
    assert.ok(answer.headers.has('retry-after'))
    await plants.release()
    await Promise.all([...running, waiting])
  })
})

describe('a read whose client has left', () => {
  it('ends in the server with its time, a get and a list', async () => {
    const { url, store } = await openStore(1_000)
    const service = await startService(url, { store })
    await lock(url, 'plants')
    for (const path of ['/plants/1', '/plants']) {
      const client = openSocket(service.url)
      client.write(toBytes({ path, headers: authorized }))
      await untilWaiting(url, 1)
      client.destroy()
      await untilWaiting(url, 0)
    }
  })
})

describe('a small write of PostgreSQL', () => {
  it('is never cancelled: it is done after its caller has stopped waiting', async () => {
    const { url, store } = await openStore(1_000)
    await store.addToken(token)
    const tokens = await lock(url, 'tokens')
    await assert.rejects(store.revokeToken('one', 5), { number: 50400 })
    await untilWaiting(url, 1)
    // Not sent: the connection is still at the first one.
    await assert.rejects(store.revokeToken('one', 6), { number: 50301 })
    await untilWaiting(url, 1)
    await tokens.release()
    assert.equal(await store.revokeToken('one', 7), 'revoked before')
    assert.equal((await store.findToken(token.hash))?.revokedAt, 5)
  })
})

describe('a write of PostgreSQL', () => {
  it('is unconfirmed when the operator ends its connection', async () => {
    const { url, store } = await openStore(60_000)
    await lock(url, 'tokens')
    const revoked = assert.rejects(store.revokeToken('one', 5), { number: 50400 })
    await untilWaiting(url, 1)
    await query(
      url,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
    await revoked
  })
})

describe('a connection on which a read is late', () => {
  it('is not used again, and reads that were sent behind are answered on another', async () => {
    const url = await postgres.newUrl()
    const address = toAddress(url)
    const [at] = address.hosts as [Host]
    const lane = buildLane({
      async open() {
        const connection = await openConnection(address, at, { tls: undefined, settings: {} })
        releaseAfterTest(() => connection.end(0))
        return connection
      },
      connections: 1,
      depth: 2,
      whenLate: 'destroy',
    })
    const askPid = async (sql: Sql) => {
      const [row] = await sql<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`
      return row.pid
    }
    const firstPid = await lane.run(askPid, 60_000)
    const late = lane.run((sql) => sql`SELECT pg_sleep(60)`, 200)
    const behind = lane.run(askPid, 60_000)
    await assert.rejects(late, { code: 'TIMEOUT' })
    assert.notEqual(await behind, firstPid)
    assert.notEqual(await lane.run(askPid, 60_000), firstPid)
  })
})

describe('a store to which a newer release adds columns', () => {
  it('is served on: tokens without a failure, the others on new connections', async () => {
    const { url, store } = await openStore(60_000)
    await store.addToken(token)
    await store.receivers.add(newReceiver())
    assert.equal((await store.receivers.list()).length, 1)
    assert.equal((await store.findToken(token.hash))?.id, 'one')
    for (const table of ['tokens', 'receivers']) {
      await query(url, `ALTER TABLE plant_store.${table} ADD COLUMN later text`)
    }
    assert.equal((await store.findToken(token.hash))?.id, 'one')
    const list = () => store.receivers.list().catch(({ number }) => assert.equal(number, 50301))
    await waitUntil(async () => (await list())?.length === 1, 'receivers are found again')
  })
})
