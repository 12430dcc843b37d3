import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import postgres from 'postgres'
import { openPrimary } from '../../src/store/postgres/connection.ts'
import { buildLane, type Lane } from '../../src/store/postgres/lane.ts'
import { pageConnections } from '../../src/store/postgres/session.ts'
import { buildPostgresStore } from '../../src/store/postgres/store.ts'
import { engines } from '../support/engines.ts'
import { query } from '../support/postgres.ts'
import { releaseAfterTest, runOnce } from '../support/release.ts'
import { startService } from '../support/service.ts'
import { closeAfterTest } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'

const quiet = { onLost() {}, onFound() {} }
const postgresql = engines.find(({ name }) => name === 'PostgreSQL') as (typeof engines)[number]
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
  const url = await postgresql.newUrl()
  const connection = await openPrimary(url, quiet)
  const store = closeAfterTest(buildPostgresStore(connection, { answerTimeoutMs }))
  return { url, connection, store }
}

/** Makes every statement on a table wait until the lock is released or the test ends. */
async function lock(url: string, table: 'plants' | 'tokens') {
  const sql = postgres(url, { max: 1, onnotice() {} })
  await sql.unsafe(`BEGIN; LOCK TABLE plant_store.${table} IN ACCESS EXCLUSIVE MODE`)
  const release = runOnce(() => sql.end({ timeout: 5 }))
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

describe('a read of PostgreSQL', () => {
  it('is cancelled in the server at the end of its time, and the next is not', async () => {
    const { url, store } = await openStore(1_000)
    for (let round = 0; round < 2; round++) {
      const plants = await lock(url, 'plants')
      const reads = [store.listPlants(page), store.listIds(page), store.getPlant(1n)]
      await Promise.all(reads.map((read) => assert.rejects(async () => read, { number: 50301 })))
      await untilWaiting(url, 0)
      await plants.release()
      assert.deepEqual((await store.listPlants(page)).plants, [])
      assert.equal(await store.getPlant(1n), undefined)
    }
  })

  it('is refused at once with 50300 when too many wait, while a get is served', async () => {
    const { connection, store } = await openStore(60_000)
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    releaseAfterTest(release)
    const running = Array.from({ length: pageConnections }, () =>
      hold(connection.session()?.pages, released),
    )
    await Promise.all(running.map(({ started }) => started))
    const waiting = Array.from({ length: 1_000 }, () => store.listPlants({ ...page, limit: 1 }))
    await assert.rejects(store.listPlants(page), { number: 50300 })
    assert.equal(await store.getPlant(1n), undefined)
    assert.equal(await store.tokenRevision(), 0n)
    release()
    await Promise.all(running.map(({ ended }) => ended))
    assert.equal((await Promise.all(waiting)).length, 1_000)
  })

  it('is refused over HTTP with 503 and Retry-After', async () => {
    const { url, store } = await openStore(60_000)
    const service = await startService(url, { store })
    const plants = await lock(url, 'plants')
    const running = Array.from({ length: pageConnections }, () => store.listPlants(page))
    await untilWaiting(url, pageConnections)
    const waiting = Array.from({ length: 1_000 }, () => store.listPlants(page))
    const answer = await service.call({ path: '/plants' })
    assert.equal(answer.status, 503)
    assert.equal(JSON.parse(answer.body).error, 50300)
    assert.ok(answer.headers.has('retry-after'))
    await plants.release()
    await Promise.all([...running, ...waiting])
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

describe('a cancel request that is on its way', () => {
  it('keeps its connection from the next statement, which it would hit', async () => {
    const url = await postgresql.newUrl()
    const sql = postgres(url, { max: 1 })
    releaseAfterTest(() => sql.end())
    const cancelAsked = Promise.withResolvers<void>()
    const cancelDone = Promise.withResolvers<void>()
    const statementDone = Promise.withResolvers<void>()
    const steps: string[] = []
    const lane = buildLane({
      open: async () => ({
        sql,
        cancel() {
          cancelAsked.resolve()
          return cancelDone.promise
        },
      }),
      connections: 1,
      queueItems: 10,
      whenLate: 'cancel',
    })
    await assert.rejects(
      lane.run(() => statementDone.promise, 1),
      { code: 'TIMEOUT' },
    )
    await cancelAsked.promise
    const next = lane.run(async () => steps.push('next'), 60_000)
    statementDone.resolve()
    await sql`SELECT 1`
    steps.push('cancelled')
    cancelDone.resolve()
    await next
    assert.deepEqual(steps, ['cancelled', 'next'])
  })
})
