import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildLane } from '../../src/store/postgres/lane.ts'
import { openPrimary } from '../../src/store/postgres/primary.ts'
import type { Sql } from '../../src/store/postgres/sql.ts'
import { ends } from '../cli/ends.ts'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { holdOpen, untilWaiting } from '../support/locks.ts'
import { newRole, openClient, query } from '../support/postgres.ts'
import { newReceiver } from '../support/receiver-record.ts'
import { releaseAfterTest } from '../support/release.ts'
import { startService } from '../support/service.ts'
import { openNewPostgresStore as openNew, openPostgresStore, quiet } from '../support/stores.ts'
import { newTokenRecord } from '../support/token-record.ts'
import { waitUntil } from '../support/wait.ts'
import { readPage } from './journal-pages.ts'

const page = { after: undefined, tag: undefined, limit: 10 }
const token = newTokenRecord({ id: 'one' })

/** Makes every statement on a table wait until the lock is released or the test ends. */
function lock(url: string, table: 'journal' | 'plants' | 'tokens') {
  return holdOpen(url, `LOCK TABLE plant_store.${table} IN ACCESS EXCLUSIVE MODE`)
}

describe('a lane', () => {
  it('sends no read that has too little time left, which could hold up those behind it', async () => {
    let destroyed = 0
    const connection = { sql: undefined, destroy: () => destroyed++ } as never
    const read = buildLane(async () => connection, 1)
    const slow = read(() => sleep(20, 'answered'), 10_000)
    for (const timeoutMs of [-1, 0, 9]) {
      await assert.rejects(
        read(() => assert.fail('it was sent'), timeoutMs),
        /TIMEOUT/,
      )
    }
    assert.equal(await slow, 'answered')
    assert.equal(destroyed, 0)
  })
})

describe('a read of PostgreSQL', () => {
  it('ends in the server with its time, and the next is answered', async () => {
    const { url, store } = await openNew({ answerTimeoutMs: 2_000 })
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

  it('of many is refused at once with 503 while too many wait, and a get is served', async () => {
    const { url, store } = await openNew()
    const service = await startService(url, { store })
    const journal = await lock(url, 'journal')
    const reads = Array.from({ length: 3_000 }, () => store.readJournal('oldest', 1))
    const outcomes = Promise.allSettled(reads)
    await assert.rejects(Promise.race(reads), { number: 50300 })
    const refused = await service.call({ path: '/plants' })
    assert.equal(refused.status, 503)
    assert.equal(JSON.parse(refused.body).error, 50300)
    assert.ok(refused.headers.has('retry-after'))
    assert.equal((await service.call({ path: '/plants/1' })).status, 404)
    await journal.release()
    const numbers = (await outcomes).map((one) => one.status === 'rejected' && one.reason.number)
    assert.deepEqual(new Set(numbers), new Set([false, 50300]))
  })

  it('that was sent behind a late one is answered on another connection', async () => {
    const { url, store } = await openNew()
    const getAll = () => Promise.all(Array.from({ length: 30 }, () => store.receivers.revision()))
    // Every connection is open, and has a read that waits for the lock until it is late.
    const before = await getAll()
    await lock(url, 'tokens')
    const late = Array.from({ length: 10 }, () => store.measure())
    assert.deepEqual(await getAll(), before)
    for (const { sizes } of await Promise.all(late)) assert.deepEqual(sizes, [])
  })
})

describe('a result after one that ended in the middle of its rows, on one connection', () => {
  it('has all its rows and no others, or is refused', async () => {
    const connection = await openPrimary(await postgres.newUrl(), quiet)
    releaseAfterTest(connection.close)
    const writer = connection.session()?.writers[0] as Sql
    const failing = writer`SELECT 1 / (5 - id) AS one FROM generate_series(1, 10) AS id`
    await assert.rejects(async () => failing, { code: '22012' })
    const [next] = await Promise.allSettled([writer`SELECT 1 AS one`])
    if (next.status === 'fulfilled') assert.deepEqual([...next.value], [{ one: 1 }])
    else assert.equal(next.reason.code, 'ROWS_MISSING')
    assert.deepEqual([...(await writer`SELECT 2 AS two`)], [{ two: 2 }])
  })
})

describe('a PostgreSQL that has no more connections', () => {
  it('is read on those that there are, and refuses reads at once that have none', async () => {
    const url = await postgres.newUrl()
    const database = new URL(url).pathname.slice(1)
    // Four connections write and watch, and two are left.
    const limited = await newRole(
      url,
      (role) =>
        `ALTER ROLE ${role} CONNECTION LIMIT 6; GRANT CREATE ON DATABASE ${database} TO ${role}`,
    )
    const store = await openPostgresStore(limited, { answerTimeoutMs: 600_000 })
    const revision = await store.receivers.revision()
    const reads = Array.from({ length: 30 }, () => store.receivers.revision())
    assert.deepEqual(new Set(await Promise.all(reads)), new Set([revision]))
    // PostgreSQL counts those that it is about to refuse: of two at once, it may accept none.
    const all = `SELECT FROM pg_stat_activity WHERE usename = '${new URL(limited).username}'`
    await waitUntil(async () => {
      await openClient(limited).catch(() => {})
      return (await query(url, all)).length === 6
    }, 'all connections are taken')
    await assert.rejects(async () => store.listPlants(page), { number: 50301 })
    assert.equal(await store.receivers.revision(), revision)
  })
})

describe('a small write of PostgreSQL', () => {
  it('is never cancelled: it is done after its caller has stopped waiting', async () => {
    const { url, store } = await openNew({ answerTimeoutMs: 2_000 })
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

  it('is unconfirmed when the operator ends its connection', async () => {
    const { url, store } = await openNew()
    await lock(url, 'tokens')
    const revoked = assert.rejects(store.revokeToken('one', 5), { number: 50400 })
    await untilWaiting(url)
    const waiting = "datname = current_database() AND wait_event_type = 'Lock'"
    await query(url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${waiting}`)
    await revoked
  })
})

describe('the lease of a receiver whose row is locked', () => {
  it('is renewed after the lock, and meanwhile given to nobody else', async () => {
    const { url, store } = await openNew()
    const other = await openPostgresStore(url)
    await store.receivers.add(newReceiver())
    const held = await store.receivers.claim('one', 600_000)
    const row = await holdOpen(url, 'SELECT FROM plant_store.receivers FOR UPDATE')
    const renewed = store.receivers.claim('one', 600_000)
    await untilWaiting(url, 1)
    // For a lease this short, the one that is held seems to end too far in the future.
    assert.deepEqual(await other.receivers.claim('two', 1), [])
    await row.release()
    assert.deepEqual(await renewed, held)
    assert.equal(held.length, 1)
  })
})

describe('a resend beside a removal of its receiver', () => {
  it('waits for the removal, and leaves no delivery', async () => {
    const { url, store } = await openNew()
    await store.createPlant({ id: 1n, name: 'x' })
    await store.receivers.add(newReceiver())
    const { events } = await readPage(store)
    const removal = await holdOpen(url, 'DELETE FROM plant_store.receivers')
    const resend = `webhook resend whk_1 ${events[0]?.position} --database ${url}`
    const resent = ends(resend, 78, /^No receiver in \S+ has the id whk_1\./, newFolder())
    await Promise.race([resent, untilWaiting(url, 1)])
    await removal.query('COMMIT')
    await resent
    assert.deepEqual(await store.receivers.listDeliveries('whk_1', 'waiting'), [])
  })
})

describe('a store to which a newer release adds columns', () => {
  it('is served on: tokens without a failure, the others on new connections', async () => {
    const { url, store } = await openNew()
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
