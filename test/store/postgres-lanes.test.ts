import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import postgres from 'postgres'
import { openPrimary } from '../../src/store/postgres/connection.ts'
import { buildLane, type Lane } from '../../src/store/postgres/lane.ts'
import type { Sql } from '../../src/store/postgres/pools.ts'
import { pageConnections, readDepth } from '../../src/store/postgres/session.ts'
import { buildPostgresStore } from '../../src/store/postgres/store.ts'
import type { Store } from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'
import { query } from '../support/postgres.ts'
import { releaseAfterTest, runOnce } from '../support/release.ts'
import { operatorToken, startService } from '../support/service.ts'
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

/** Asks for as many lists as may wait, and as many more as may have been sent at once. */
function fillQueue(store: Store) {
  const length = 1_000 + pageConnections * readDepth
  return Promise.allSettled(Array.from({ length }, () => store.listPlants({ ...page, limit: 1 })))
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
  it('is cancelled in the server long before its time is over, a get and a list', async () => {
    const { url, store } = await openStore(60_000)
    const service = await startService(url, { store })
    await lock(url, 'plants')
    for (const path of ['/plants/1', '/plants']) {
      const { hostname: host, port } = new URL(service.url)
      const client = connect({ host, port: Number(port) })
      client.write(
        `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${operatorToken}\r\n\r\n`,
      )
      await untilWaiting(url, 1)
      client.destroy()
      await untilWaiting(url, 0)
    }
  })

  it('leaves the queue without being sent', async () => {
    const { url, store } = await openStore(60_000)
    await lock(url, 'plants')
    const caller = { destroyed: false }
    const running = Array.from({ length: pageConnections }, () => store.listPlants(page, caller))
    await untilWaiting(url, pageConnections)
    const waiting = store.listPlants(page, caller)
    caller.destroyed = true
    const outcomes = await Promise.allSettled([...running, waiting])
    for (const outcome of outcomes) assert.equal(outcome.status, 'rejected')
    await untilWaiting(url, 0)
  })

  it('ends no get that others of its batch wait for', async () => {
    const { url, store } = await openStore(60_000)
    const plants = await lock(url, 'plants')
    const left = { destroyed: false }
    const gets = [store.getPlant(1n, left), store.getPlant(2n, { destroyed: false })]
    await untilWaiting(url, 1)
    left.destroyed = true
    const other = { destroyed: false }
    const list = store.listPlants(page, other)
    await untilWaiting(url, 2)
    other.destroyed = true
    // The list is checked after the gets: they were found wanted.
    await assert.rejects(list, { number: 50300 })
    await plants.release()
    assert.deepEqual(await Promise.all(gets), [undefined, undefined])
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

describe('a connection on which a read was given up', () => {
  it('is cancelled and closed, and reads that were sent behind are sent again', async () => {
    const sql = {} as Sql
    const steps: string[] = []
    const firstSent = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<void>()
    let opened = 0
    const lane = buildLane({
      async open() {
        const name = `connection ${++opened}`
        return {
          sql: Object.assign(() => name, sql),
          async cancel() {
            steps.push(`${name} is cancelled`)
          },
          async close() {
            steps.push(`${name} is closed`)
            closed.resolve()
          },
        }
      },
      connections: 1,
      depth: 2,
      queueItems: 10,
      whenLate: 'cancel',
    })
    const caller = { destroyed: false }
    const never = new Promise<never>(() => {})
    const nameOf = (one: Sql) => (one as unknown as () => string)()
    const first = lane.run(
      (one) => {
        steps.push(`the first read is sent on ${nameOf(one)}`)
        firstSent.resolve()
        return never
      },
      60_000,
      caller,
    )
    await firstSent.promise
    const next = lane.run(async (one) => {
      steps.push(`the next read is sent on ${nameOf(one)}`)
      return opened === 1 ? never : 'answered'
    }, 60_000)
    caller.destroyed = true
    await assert.rejects(first, { number: 50300 })
    assert.equal(await next, 'answered')
    await closed.promise
    assert.deepEqual(steps, [
      'the first read is sent on connection 1',
      'the next read is sent on connection 1',
      'connection 1 is cancelled',
      'connection 1 is closed',
      'the next read is sent on connection 2',
    ])
  })
})
