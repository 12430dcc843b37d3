import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { toCursor } from '../../src/journal/position.ts'
import { toAddress } from '../../src/store/postgres/address.ts'
import { openConnection as openServerConnection } from '../../src/store/postgres/connection.ts'
import { buildHorizon } from '../../src/store/postgres/horizon.ts'
import { journalEnd, readJournal } from '../../src/store/postgres/journal.ts'
import { openSession } from '../../src/store/postgres/primary.ts'
import type { Sql } from '../../src/store/postgres/sql.ts'
import { type JournalEvent, type Position, type Store, toPlantId } from '../../src/store/store.ts'
import { engines, postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { holdChange, holdOpen, untilWaiting } from '../support/locks.ts'
import { query } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { openNewPostgresStore, openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { readIds, readPage } from './journal-pages.ts'
import { execute } from './old-stores.ts'

/** What a store holds after a dump from before its last create is brought back. */
const toDump = (schema: string) => `
  DELETE FROM ${schema}plants WHERE id = 2;
  DELETE FROM ${schema}journal WHERE seq = (SELECT max(seq) FROM ${schema}journal)`
const lowerSequence = `
  SELECT setval('plant_store.journal_seq', (SELECT max(seq) FROM plant_store.journal))`

for (const engine of engines) {
  describe(`a position from after the moment of a backup on ${engine.name}`, () => {
    it('is gone when the backup is back, though its number is used again', async () => {
      const url = await engine.newUrl()
      const store = await engine.open(url)
      await store.createPlant({ id: 1n, name: 'before' })
      const { end: before } = await readPage(store, 'oldest')
      await store.createPlant({ id: 2n, name: 'lost' })
      const { end: after } = await readPage(store, 'oldest')
      await store.close()
      await execute(url, toDump)
      if (engine === postgres) await query(url, lowerSequence)
      const restored = await engine.open(url)
      assert.equal(await restored.readJournal(after, 10), 'gone')
      await restored.createPlant({ id: 3n, name: 'in its place' })
      const { end } = await readPage(restored, 'oldest')
      assert.equal(toCursor(end)?.seq, toCursor(after)?.seq)
      assert.equal(await restored.readJournal(after, 10), 'gone')
      assert.deepEqual(await readIds(restored, before), [3n])
    })
  })
}

describe('the journal of PostgreSQL beside a transaction that has drawn a number', () => {
  /** A store, and the end of its journal. */
  async function open() {
    const { url, store } = await openNewPostgresStore()
    return { url, store, begin: (await store.journalEnd()) as Position }
  }

  const toText = (event: JournalEvent) => `${event.type.replace('plant.', '')} ${toPlantId(event)}`
  const create = (store: Store, id: bigint) => store.createPlant({ id, name: 'quick' })

  for (const [ending, expected] of [
    ['COMMIT', [1n, 50n, 2n]],
    ['ROLLBACK', [1n, 2n]],
  ] as const) {
    it(`shows nothing after it until its ${ending}, and then all in order`, async () => {
      const { url, store } = await open()
      await store.createPlant({ id: 1n, name: 'first' })
      const { end: begin } = await readPage(store, 'oldest')
      let wakes = 0
      releaseAfterTest(store.watchJournal(() => wakes++))
      // A transaction of somebody else, which never ends, does not matter.
      await holdOpen(url, 'CREATE TABLE other (x integer)')
      const slow = await holdChange(url, 50)
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

  const wanted: [
    title: string,
    held: (url: string) => ReturnType<typeof holdOpen>,
    ends: string,
    write: (store: Store) => Promise<unknown>[],
    outcomes: string[],
    events: string[],
  ][] = [
    [
      'a plant that came and went in one commit',
      (url) => holdChange(url, 50),
      'COMMIT',
      (store) => [create(store, 50n), store.deletePlant(50n, {}), create(store, 51n)],
      ['exists', 'deleted', 'created'],
      ['created 50', 'deleted 50', 'created 51'],
    ],
    [
      'a batch that began before',
      (url) => holdOpen(url, "INSERT INTO plant_store.plants VALUES (50, 'slow', NULL, 1)"),
      `DELETE FROM plant_store.plants WHERE id = 50;
      INSERT INTO plant_store.journal VALUES (nextval('plant_store.journal_seq'), 0, 7, 2,
        E'c\\t\\t50\\t"a"\\nd\\t\\t50\\t"a"');
      COMMIT`,
      (store) => [49n, 50n, 51n].map((id) => create(store, id)),
      ['created', 'created', 'created'],
      ['created 50', 'deleted 50', 'created 49', 'created 50', 'created 51'],
    ],
    [
      'the plants of a batch that wanted its id, without this one',
      (url) => holdChange(url, 50),
      'COMMIT',
      (store) => [51n, 50n, 52n].map((id) => create(store, id)),
      ['created', 'exists', 'created'],
      ['created 50', 'created 51', 'created 52'],
    ],
  ]
  for (const [title, held, ends, write, outcomes, events] of wanted) {
    it(`has after it, not beside it: ${title}`, async () => {
      const { url, store } = await open()
      const slow = await held(url)
      const writing = Promise.all(write(store))
      await untilWaiting(url)
      await slow.query(ends)
      const written = await writing
      const told = written.map((one) => (typeof one === 'bigint' ? 'created' : one))
      assert.deepEqual(told, outcomes)
      assert.deepEqual((await readPage(store)).events.map(toText), events)
    })
  }

  it('shows what follows once the server has ended one whose process hangs', async () => {
    const { url, store, begin } = await open()
    const session = await openSession(toAddress(url), 1_000)
    releaseAfterTest(() => session.end(0))
    const [writer] = session.writers
    assert.ok(writer)
    await writer`BEGIN`
    await writer`SELECT nextval('plant_store.journal_seq')`
    await store.createPlant({ id: 1n, name: 'next' })
    await waitUntil(async () => (await readIds(store, begin)).length > 0, 'the change is shown')
  })

  it('has its end awaited on one connection, however many callers there are', async () => {
    const { url, store } = await openNewPostgresStore()
    const connections = `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`
    const slow = await holdChange(url, 50)
    await create(store, 1n)
    const before = (await query(url, connections)).length
    const ends = Array.from({ length: 64 }, () => store.journalEnd())
    for (const end of await Promise.allSettled(ends)) {
      assert.ok(end.status === 'rejected')
      assert.equal(end.reason.number, 50301)
    }
    assert.equal((await query(url, connections)).length - before, 1)
    await slow.query('ROLLBACK')
    assert.notEqual(await store.journalEnd(), 'off')
  })

  it('has no end before a change that was there, though that was dropped before it ended', async () => {
    const { url, store } = await open()
    const slow = await holdChange(url, 50)
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
    const connection = await openServerConnection(address, host, 'none')
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
    const { url, store, begin } = await open()
    const slow = await holdChange(url, 50)
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
      assert.deepEqual(page.events.map(toPlantId), [50n, 1n])
    }
  })

  it('is waited for, though an answer from before it arrives after the wait began', async () => {
    const { url, store, begin } = await open()
    const horizon = buildHorizon(() => {})
    const late = holdFirst(await openSql(url))
    const lateCheck = horizon.settle(late.sql)
    await late.answered
    const slow = await holdChange(url, 50)
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

describe('the journal of SQLite that a process switches off', () => {
  it('waits for a transaction of another, and then is switched', async () => {
    const path = join(newFolder(), 'plants.db')
    const program = `
      const { DatabaseSync } = require('node:sqlite')
      const db = new DatabaseSync(process.argv[1])
      db.exec('BEGIN IMMEDIATE')
      console.log('locked')
      setTimeout(() => db.exec('COMMIT'), 300)`
    const locking = spawn(process.execPath, ['--eval', program, path])
    releaseAfterTest(() => void locking.kill())
    await once(locking.stdout, 'data')
    const store = openSqliteStore(path, { journaling: 'off' })
    assert.equal(await store.journalEnd(), 'off')
  })
})

describe('the journal of PostgreSQL that begins beside a change under way', () => {
  const change = (url: string) =>
    holdOpen(url, "INSERT INTO plant_store.plants VALUES (1, 'slow', NULL, 1)")

  it('begins after it, so that who lists after the begin misses nothing', async () => {
    const { url, store: off } = await openNewPostgresStore({ journaling: 'off' })
    const slow = await change(url)
    const opening = postgres.open(url, { journaling: 'on' })
    await untilWaiting(url)
    const creating = off.createPlant({ id: 2n, name: 'behind it' })
    await slow.query('COMMIT')
    const on = await opening
    await creating
    assert.deepEqual(await readIds(on, 'oldest'), [2n])
  })

  it('is refused with one line when it does not end', async () => {
    const { url } = await openNewPostgresStore({ journaling: 'off' })
    await change(url)
    await assert.rejects(postgres.open(url, { journaling: 'on' }), {
      name: 'UnusableStore',
      message: 'The journal cannot begin while a transaction changes plants: end it, or try again.',
    })
  })
})
