import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { buildReader, type JournalSource } from '../../src/journal/reader.ts'
import { toAddress } from '../../src/store/postgres/address.ts'
import { openConnection as openServerConnection } from '../../src/store/postgres/connection.ts'
import { buildHorizon } from '../../src/store/postgres/horizon.ts'
import { journalEnd, readJournal } from '../../src/store/postgres/journal.ts'
import { openSession } from '../../src/store/postgres/session.ts'
import type { Sql } from '../../src/store/postgres/sql.ts'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../src/store/sqlite/store.ts'
import { type JournalPage, type Position, type Store, toPlant } from '../../src/store/store.ts'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { openClient, query } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { closeAfterTest, openSqliteStore } from '../support/stores.ts'
import { newTokenRecord } from '../support/token-record.ts'
import { waitUntil } from '../support/wait.ts'

async function readPage(store: Store, after: Position | 'oldest'): Promise<JournalPage> {
  const page = await store.readJournal(after, 1_000)
  assert.ok(typeof page === 'object', `the journal answers "${page}"`)
  return page
}

async function readIds(store: Store, after: Position | 'oldest'): Promise<bigint[]> {
  return (await readPage(store, after)).events.map((event) => toPlant(event).id)
}

describe('a position from after the moment of a backup', () => {
  it('is gone when a file of SQLite is copied back, though its number is used again', async () => {
    const path = join(newFolder(), 'plants.db')
    const first = openSqliteStore(path)
    await first.createPlant({ id: 1n, name: 'before' })
    const { end: before } = await readPage(first, 'oldest')
    await first.close()
    copyFileSync(path, `${path}.copy`)
    const second = openSqliteStore(path)
    await second.createPlant({ id: 2n, name: 'lost' })
    const { end: after } = await readPage(second, 'oldest')
    await second.close()
    copyFileSync(`${path}.copy`, path)
    const third = openSqliteStore(path)
    assert.equal(await third.readJournal(after, 10), 'gone')
    await third.createPlant({ id: 3n, name: 'in its place' })
    assert.equal(await third.readJournal(after, 10), 'gone')
    assert.deepEqual(await readIds(third, before), [3n])
  })

  it('is gone when rows of PostgreSQL are restored, though their numbers are used again', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    await store.createPlant({ id: 1n, name: 'before' })
    const { end: before } = await readPage(store, 'oldest')
    await store.createPlant({ id: 2n, name: 'lost' })
    const { end: after } = await readPage(store, 'oldest')
    await store.close()
    // As a dump from before brings it back.
    await query(
      url,
      `DELETE FROM plant_store.plants WHERE id = 2;
       DELETE FROM plant_store.journal WHERE seq = (SELECT max(seq) FROM plant_store.journal);
       SELECT setval('plant_store.journal_seq', (SELECT max(seq) FROM plant_store.journal))`,
    )
    const restored = await postgres.open(url)
    assert.equal(await restored.readJournal(after, 10), 'gone')
    await restored.createPlant({ id: 3n, name: 'in its place' })
    assert.equal(await restored.readJournal(after, 10), 'gone')
    assert.deepEqual(await readIds(restored, before), [3n])
  })
})

describe('the journal of PostgreSQL beside a transaction that has drawn a number', () => {
  /** A transaction that has its number and does not commit yet, after others have begun. */
  async function openWriter(url: string, id: number) {
    const sql = await openClient(url)
    releaseAfterTest(() => sql.end())
    await sql.query(`BEGIN;
      INSERT INTO plant_store.plants VALUES (${id}, 'slow', NULL, 1);
      INSERT INTO plant_store.journal
      VALUES (nextval('plant_store.journal_seq'), 0, 7, 1, E'c\\t\\t${id}\\t"slow"')`)
    return sql
  }

  /** Resolves when a change waits for that of the writer. */
  function untilWaiting(url: string): Promise<void> {
    const waiting = `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event = 'transactionid'`
    return waitUntil(async () => (await query(url, waiting)).length > 0, 'a change waits')
  }

  for (const [ending, expected] of [
    ['COMMIT', [1n, 50n, 2n]],
    ['ROLLBACK', [1n, 2n]],
  ] as const) {
    it(`shows nothing after it until its ${ending}, and then all in order`, async () => {
      const url = await postgres.newUrl()
      const store = await postgres.open(url)
      await store.createPlant({ id: 1n, name: 'first' })
      const { end: begin } = await readPage(store, 'oldest')
      let wakes = 0
      releaseAfterTest(store.watchJournal(() => wakes++))
      // A transaction of somebody else, which never ends, does not matter.
      const foreign = await openClient(url)
      releaseAfterTest(() => foreign.end())
      await foreign.query('BEGIN; CREATE TABLE other (x integer)')
      const slow = await openWriter(url, 50)
      await store.createPlant({ id: 2n, name: 'second' })
      const before = wakes
      assert.deepEqual(await readIds(store, begin), [])
      const other = await postgres.open(url)
      assert.deepEqual(await readIds(other, 'oldest'), [1n])
      await waitUntil(() => wakes > before, 'watchers are told to look again')
      await slow.query(ending)
      await waitUntil(async () => (await readIds(store, begin)).length > 0, 'it has settled')
      assert.deepEqual(await readIds(store, 'oldest'), expected)
      assert.deepEqual(await readIds(other, 'oldest'), expected)
      assert.equal(await other.journalEnd(), await store.journalEnd())
    })
  }

  it('has a plant that came and went in one commit after it, not beside it', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    const slow = await openWriter(url, 50)
    const plant = { id: 50n, name: 'quick' }
    const writing = Promise.all([
      store.createPlant(plant),
      store.deletePlant(50n, {}),
      store.createPlant({ ...plant, id: 51n }),
    ])
    await untilWaiting(url)
    await slow.query('COMMIT')
    const [created, deleted] = await writing
    assert.deepEqual([created, deleted], ['exists', 'deleted'])
    const { events } = await readPage(store, 'oldest')
    assert.deepEqual(
      events.map((event) => `${event.type} ${toPlant(event).id}`),
      ['plant.created 50', 'plant.deleted 50', 'plant.created 51'],
    )
  })

  it('has a batch that waited for it after it, though the batch began before', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    const slow = await openClient(url)
    releaseAfterTest(() => slow.end())
    await slow.query(`BEGIN; INSERT INTO plant_store.plants VALUES (50, 'slow', NULL, 1)`)
    const ids = [49n, 50n, 51n]
    const writing = Promise.all(ids.map((id) => store.createPlant({ id, name: 'quick' })))
    await untilWaiting(url)
    await slow.query(`DELETE FROM plant_store.plants WHERE id = 50;
      INSERT INTO plant_store.journal VALUES (nextval('plant_store.journal_seq'), 0, 7, 2,
        E'c\\t\\t50\\t"a"\\nd\\t\\t50\\t"a"');
      COMMIT`)
    assert.ok((await writing).every((outcome) => outcome !== 'exists'))
    assert.deepEqual(await readIds(store, 'oldest'), [50n, 50n, ...ids])
  })

  it('has the plants of a batch that wanted its id after it, without this one', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    const slow = await openWriter(url, 50)
    const ids = [51n, 50n, 52n]
    const writing = Promise.all(ids.map((id) => store.createPlant({ id, name: 'quick' })))
    await untilWaiting(url)
    await slow.query('COMMIT')
    const outcomes = (await writing).map((outcome) => (outcome === 'exists' ? outcome : 'created'))
    assert.deepEqual(outcomes, ['created', 'exists', 'created'])
    assert.deepEqual(await readIds(store, 'oldest'), [50n, 51n, 52n])
  })

  it('ends after every change that is there, though a page waited for less', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    const begin = (await store.journalEnd()) as Position
    const slow = await openWriter(url, 50)
    await store.createPlant({ id: 1n, name: 'first' })
    assert.deepEqual(await readIds(store, begin), [])
    await slow.query('COMMIT')
    await store.createPlant({ id: 2n, name: 'second' })
    const end = (await store.journalEnd()) as Position
    assert.deepEqual(await readIds(store, end), [])
    assert.deepEqual(await readIds(store, begin), [50n, 1n, 2n])
  })

  it('has no end until it has ended, and then one after every change that is there', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    await store.journalEnd()
    const slow = await openWriter(url, 50)
    await store.createPlant({ id: 1n, name: 'acknowledged' })
    await assert.rejects(async () => store.journalEnd(), { number: 50301 })
    await slow.query('COMMIT')
    const end = (await store.journalEnd()) as Position
    assert.deepEqual(await readIds(store, end), [])
    assert.deepEqual(await readIds(store, 'oldest'), [50n, 1n])
  })

  it('has no beginning until it has ended, if the changes before it were trimmed', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    await store.createPlant({ id: 1n, name: 'trimmed' })
    const slow = await openWriter(url, 50)
    await store.createPlant({ id: 2n, name: 'kept' })
    while (!(await store.trimJournal(Date.now() + 60_000)));
    const other = await postgres.open(url)
    for (const reader of [store, other])
      await assert.rejects(async () => reader.readJournal('oldest', 10), { number: 50301 })
    await slow.query('COMMIT')
    for (const reader of [store, other])
      assert.deepEqual(await readIds(reader, 'oldest'), [50n, 2n])
  })

  it('shows what follows once the server has ended one whose process hangs', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    const begin = (await store.journalEnd()) as Position
    const session = await openSession(toAddress(url), 100)
    releaseAfterTest(() => session.end(0))
    const [writer] = session.writers
    assert.ok(writer)
    await writer`BEGIN`
    await writer`SELECT nextval('plant_store.journal_seq')`
    await store.createPlant({ id: 1n, name: 'next' })
    await waitUntil(async () => (await readIds(store, begin)).length > 0, 'the change is shown')
  })

  it('has no end that is known, after all that had settled was dropped', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    await store.journalEnd()
    await openWriter(url, 50)
    await store.createPlant({ id: 1n, name: 'not settled' })
    while (!(await store.trimJournal(Date.now() + 60_000)));
    await assert.rejects(async () => store.journalEnd(), { number: 50301 })
  })

  it('has no end before a change that was there, though that was dropped before it ended', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    const slow = await openWriter(url, 50)
    await store.createPlant({ id: 1n, name: 'there, then dropped' })
    const sql = await openSql(url)
    let answers = 0
    const ask = async (parts: TemplateStringsArray, ...values: []) => {
      const answer = await sql(parts, ...values)
      // It has seen the newest change, and waits for those before it.
      if (++answers === 2) {
        await store.createPlant({ id: 2n, name: 'last' })
        while (!(await store.trimJournal(Date.now() + 60_000)));
        await slow.query('COMMIT')
      }
      return answer
    }
    const end = journalEnd(
      ask as Sql,
      buildHorizon(() => {}),
    )
    await assert.rejects(end, { number: 50301 })
    assert.deepEqual(await readIds(store, 'oldest'), [50n, 2n])
  })

  async function openSql(url: string): Promise<Sql> {
    const address = toAddress(url)
    const [host] = address.hosts
    assert.ok(host)
    const connection = await openServerConnection(address, host, { isPipelined: true })
    releaseAfterTest(connection.destroy)
    return connection.sql
  }

  /** The same connection. Its first answer arrives when it is let through. */
  function holdFirst(sql: Sql) {
    const sent = Promise.withResolvers<void>()
    const through = Promise.withResolvers<void>()
    let isFirst = true
    const held = async (parts: TemplateStringsArray, ...values: []) => {
      const isHeld = isFirst
      isFirst = false
      const answer = await sql(parts, ...values)
      if (isHeld) sent.resolve()
      if (isHeld) await through.promise
      return answer
    }
    return {
      sql: Object.assign(held, sql) as Sql,
      answered: sent.promise,
      letThrough: through.resolve,
    }
  }

  it('has its change in a page whose answer arrives after that of a later page', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    const begin = (await store.journalEnd()) as Position
    const slow = await openWriter(url, 50)
    await store.createPlant({ id: 1n, name: 'first' })
    const horizon = buildHorizon(() => {})
    const late = holdFirst(await openSql(url))
    const latePage = readJournal(late.sql, horizon, begin, 10)
    await late.answered
    await slow.query('COMMIT')
    const laterPage = await readJournal(await openSql(url), horizon, begin, 10)
    late.letThrough()
    for (const page of [laterPage, await latePage]) {
      assert.ok(typeof page === 'object')
      const ids = page.events.map((event) => toPlant(event).id)
      assert.deepEqual(ids, [50n, 1n])
    }
  })

  it('is waited for, though an answer from before it arrives after the wait began', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    const begin = (await store.journalEnd()) as Position
    const horizon = buildHorizon(() => {})
    const late = holdFirst(await openSql(url))
    const lateCheck = horizon.settle(late.sql)
    await late.answered
    const slow = await openWriter(url, 50)
    await store.createPlant({ id: 1n, name: 'first' })
    const sql = await openSql(url)
    assert.equal(await horizon.settle(sql), false)
    late.letThrough()
    await lateCheck
    const early = await readJournal(sql, horizon, begin, 10)
    assert.ok(typeof early === 'object')
    assert.deepEqual(early.events, [])
    await slow.query('COMMIT')
    const page = await readJournal(sql, horizon, begin, 10)
    assert.ok(typeof page === 'object')
    assert.equal(page.events.length, 2)
  })
})

describe('the journal of SQLite that another process switches off', () => {
  function countRows(path: string): unknown {
    using db = new DatabaseSync(path)
    return db.prepare('SELECT count(*) AS count FROM journal WHERE count > 0').get()?.count
  }

  it('gets no row, nor one of a failed batch, until it is on again', async () => {
    const path = join(newFolder(), 'plants.db')
    const store = openSqliteStore(path, { journaling: 'on' })
    const token = newTokenRecord()
    await Promise.all([store.createPlant({ id: 1n, name: 'seen' }), store.addToken(token)])
    // A token that is there already fails its batch.
    const batch = [store.createPlant({ id: 2n, name: 'not stored' }), store.addToken(token)]
    for (const { status } of await Promise.allSettled(batch)) assert.equal(status, 'rejected')
    const other = openSqliteStore(path, { journaling: 'off' })
    while (!(await other.trimJournal(Date.now() + 60_000)));
    for (const id of [3n, 4n]) await store.createPlant({ id, name: 'unseen' })
    assert.equal(countRows(path), 0)
    openSqliteStore(path, { journaling: 'on' })
    await store.createPlant({ id: 5n, name: 'seen again' })
    assert.equal(countRows(path), 1)
    assert.deepEqual(await readIds(store, 'oldest'), [5n])
  })

  it('waits for a transaction of another, and then is switched', async () => {
    const path = join(newFolder(), 'plants.db')
    const db = openConnection(path)
    const program = `
      const { DatabaseSync } = require('node:sqlite')
      const db = new DatabaseSync(process.argv[1])
      db.exec('BEGIN IMMEDIATE')
      console.log('locked')
      setTimeout(() => db.exec('COMMIT'), 300)`
    const locking = spawn(process.execPath, ['--eval', program, path])
    releaseAfterTest(() => void locking.kill())
    await once(locking.stdout, 'data')
    const store = closeAfterTest(buildSqliteStore(db, { journaling: 'off' }))
    assert.equal(await store.journalEnd(), 'off')
  })
})

describe('the journal of PostgreSQL that another process switches off', () => {
  it('wakes those who watch it, and keeps no change', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    await store.createPlant({ id: 1n, name: 'seen' })
    const stop = new AbortController()
    releaseAfterTest(() => stop.abort())
    const end = (await store.journalEnd()) as Position
    let reads = 0
    const source: JournalSource = {
      ...store,
      readJournal(...place) {
        reads++
        return store.readJournal(...place)
      },
    }
    let last: unknown
    void (async () => {
      for await (const page of buildReader(source).follow(end, stop.signal)) last = page
    })()
    await waitUntil(() => reads > 1, 'the first poll has woken it')
    const other = await postgres.open(url, { journaling: 'off' })
    while (!(await other.trimJournal(Date.now() + 60_000)));
    await waitUntil(() => last === 'off', 'the follower ends')
    const rows = 'SELECT FROM plant_store.journal WHERE count > 0'
    assert.equal((await query(url, rows)).length, 0)
  })
})

describe('the journal of PostgreSQL that begins beside a change under way', () => {
  async function change(url: string) {
    const sql = await openClient(url)
    releaseAfterTest(() => sql.end())
    await sql.query("BEGIN; INSERT INTO plant_store.plants VALUES (1, 'slow', NULL, 1)")
    return sql
  }

  it('begins after it, so that who lists after the begin misses nothing', async () => {
    const url = await postgres.newUrl()
    const off = await postgres.open(url, { journaling: 'off' })
    const slow = await change(url)
    const opening = postgres.open(url, { journaling: 'on' })
    const isWaiting = `SELECT FROM pg_locks WHERE NOT granted
      AND relation = 'plant_store.plants'::regclass`
    await waitUntil(async () => (await query(url, isWaiting)).length > 0, 'the begin waits')
    const creating = off.createPlant({ id: 2n, name: 'behind it' })
    await slow.query('COMMIT')
    const on = await opening
    await creating
    assert.deepEqual(await readIds(on, 'oldest'), [2n])
  })

  it('is refused with one line when it does not end', async () => {
    const url = await postgres.newUrl()
    await postgres.open(url, { journaling: 'off' })
    await change(url)
    await assert.rejects(postgres.open(url, { journaling: 'on' }), {
      name: 'UnusableStore',
      message: 'The journal cannot begin while a transaction changes plants: end it, or try again.',
    })
  })
})
