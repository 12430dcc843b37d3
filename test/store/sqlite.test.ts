import assert from 'node:assert/strict'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { constants, DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { Worker } from 'node:worker_threads'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { setSynchronous } from '../../src/store/sqlite/durability.ts'
import { migrations } from '../../src/store/sqlite/migrations.ts'
import { UnusableStore } from '../../src/store/store.ts'
import { newReceiver } from '../../src/webhooks/receiver.ts'
import { breakSync } from '../support/broken-sync.ts'
import { newFolder } from '../support/folder.ts'
import { releaseAfterTest } from '../support/release.ts'
import { withoutRights } from '../support/rights.ts'
import { openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { oldFile } from './old-stores.ts'

describe('a SQLite file', () => {
  const beginnings: [title: string, prepare: (path: string) => void][] = [
    ['is made with its folder', () => {}],
    ['is empty, and others may read it', (path) => writeFileSync(path, '', { mode: 0o644 })],
    [
      'was opened before, and others may read it',
      (path) => {
        openConnection(path).close()
        chmodSync(path, 0o644)
      },
    ],
    [
      'is open elsewhere, and others may read it and its log',
      (path) => {
        const other = openConnection(path)
        releaseAfterTest(() => other.close())
        for (const suffix of ['', '-wal', '-shm']) chmodSync(path + suffix, 0o644)
      },
    ],
  ]
  for (const [title, prepare] of beginnings) {
    it(`is private, with its log, when it ${title}`, () => {
      const path = join(newFolder(), 'a', 'b', 'plants.db')
      if (prepare.length > 0) mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 })
      prepare(path)
      using _ = openConnection(path)
      for (const suffix of ['', '-wal', '-shm']) {
        assert.equal(statSync(path + suffix).mode & 0o777, 0o600, suffix)
      }
      assert.equal(statSync(join(path, '..')).mode & 0o777, 0o700)
    })
  }

  it('gives back the space that an older release has kept for a full disk', () => {
    const path = join(newFolder(), 'plants.db')
    copyFileSync(oldFile, path)
    const reserve = `${path}-reserve`
    const mark = 'Plant Store keeps this space for a full disk. Do not delete it.\n'
    writeFileSync(reserve, mark + 'x'.repeat(10_000))
    openConnection(path).close()
    assert.equal(existsSync(reserve), false)
    for (const foreign of ['notes of somebody else', 'Plant Store']) {
      writeFileSync(reserve, foreign)
      openConnection(path).close()
      assert.equal(readFileSync(reserve, 'utf8'), foreign)
    }
    rmSync(reserve)
    mkdirSync(reserve)
    openConnection(path).close()
    assert.ok(existsSync(reserve))
  })

  it('syncs each commit: a write whose fsync fails does not succeed', async () => {
    const path = join(newFolder(), 'plants.db')
    const store = openSqliteStore(path)
    await store.createPlant({ id: 1n, name: 'x' })
    breakSync(`${path}-wal`)
    await assert.rejects(async () => store.createPlant({ id: 2n, name: 'x' }), { number: 50400 })
  })

  it('is opened with synchronous = FULL, and refused if SQLite ignores that', () => {
    using db = openConnection(join(newFolder(), 'plants.db'))
    assert.equal(db.prepare('PRAGMA synchronous').get()?.synchronous, 2n)
    setSynchronous(db, 'NORMAL')
    assert.equal(db.prepare('PRAGMA synchronous').get()?.synchronous, 1n)
    const { SQLITE_PRAGMA, SQLITE_IGNORE, SQLITE_OK } = constants
    db.setAuthorizer((action, name, value) =>
      action === SQLITE_PRAGMA && name === 'synchronous' && value !== null
        ? SQLITE_IGNORE
        : SQLITE_OK,
    )
    assert.throws(() => setSynchronous(db, 'FULL'), UnusableStore)
  })

  it('is opened while another connection reads from it', () => {
    const path = join(newFolder(), 'plants.db')
    openConnection(path).close()
    using reader = new DatabaseSync(path)
    reader.exec('BEGIN; SELECT * FROM plants')
    openConnection(path).close()
  })

  it('is opened while another connection writes to it', async () => {
    const path = join(newFolder(), 'plants.db')
    const store = openSqliteStore(path)
    await store.createPlant({ id: -1n, name: 'x' })
    const program = `
      const { DatabaseSync } = require('node:sqlite')
      const db = new DatabaseSync(require('node:worker_threads').workerData, { timeout: 10_000 })
      const insert = db.prepare("INSERT INTO plants (id, name, version) VALUES (?, 'x', 1)")
      for (let id = 0; ; id++) insert.run(id)`
    const writer = new Worker(program, { eval: true, workerData: path })
    releaseAfterTest(() => writer.terminate())
    for (let id = 0n; id < 20n; id++) {
      await waitUntil(async () => (await store.getPlant(id)) !== undefined, `plant ${id} is there`)
      openConnection(path).close()
    }
  })

  it('is opened and read while another process holds its lock', () => {
    const path = join(newFolder(), 'plants.db')
    openConnection(path).close()
    using other = new DatabaseSync(path)
    other.exec('BEGIN IMMEDIATE')
    using db = openConnection(path, { timeoutMs: 50 })
    assert.deepEqual(db.prepare('SELECT * FROM plants').all(), [])
  })

  it('keeps plants while it is open, also in memory', async () => {
    const store = openSqliteStore(':memory:')
    await store.createPlant({ id: 1n, name: 'x' })
    assert.equal((await store.getPlant(1n))?.name, 'x')
  })
})

describe('the journal of a store on SQLite', () => {
  it('refuses a snapshot while no other connection can be opened', async () => {
    const path = join(newFolder(), 'plants.db')
    const store = openSqliteStore(path)
    renameSync(path, `${path}-moved`)
    await assert.rejects(store.openSnapshot(), { number: 50301 })
    renameSync(`${path}-moved`, path)
    await (await store.openSnapshot()).close()
  })

  it('wakes nobody for writes that it does not record', async () => {
    const store = openSqliteStore(join(newFolder(), 'plants.db'))
    let wakes = 0
    releaseAfterTest(store.watchJournal(() => wakes++))
    await store.createPlant({ id: 1n, name: 'recorded' })
    await waitUntil(() => wakes > 1, 'the first poll has passed')
    const before = wakes
    await store.noteTokenUses([{ id: 'none', at: 1 }])
    const position = await store.journalEnd()
    await store.receivers.add(newReceiver({ url: 'http://127.0.0.1:1', types: [], position }))
    assert.equal(wakes, before)
  })
})

describe('a file that cannot be the store', () => {
  function refuses(path: string, message: RegExp): void {
    const before = existsSync(path) && statSync(path).isFile() ? readFileSync(path) : undefined
    assert.throws(
      () => openConnection(path),
      (error) =>
        error instanceof UnusableStore &&
        message.test(error.message) &&
        !error.message.includes('\n'),
    )
    if (before) assert.deepEqual(readFileSync(path), before)
    assert.equal(existsSync(`${path}-wal`), false)
  }

  const noDatabase = /is not a database of Plant Store/
  const cases: [title: string, write: (path: string) => void, message: RegExp][] = [
    ['not a database', (path) => writeFileSync(path, 'Water the plants.\n'), noDatabase],
    [
      'a database of another program',
      (path) => {
        using other = new DatabaseSync(path)
        other.exec('CREATE TABLE plants (id INTEGER PRIMARY KEY)')
      },
      noDatabase,
    ],
    [
      'a damaged database of Plant Store',
      (path) => {
        openConnection(path).close()
        writeFileSync(path, readFileSync(path).fill(0xff, 100, 4_096))
      },
      /is not a database of Plant Store|Cannot open the database/,
    ],
    [
      'written by a newer release',
      (path) => {
        using db = openConnection(path)
        db.exec(`PRAGMA user_version = ${migrations.length + 1}`)
      },
      new RegExp(`schema ${migrations.length + 1}, this one knows ${migrations.length}`),
    ],
    ['a folder', (path) => mkdirSync(path), /Cannot open the database/],
  ]
  for (const [title, write, message] of cases) {
    it(`is refused when it is ${title}, and stays as it is`, () => {
      const path = join(newFolder(), 'plants.db')
      write(path)
      refuses(path, message)
    })
  }

  it('is refused when its path is too long for SQLite, with a hint', () => {
    const path = join(newFolder(), 'a'.repeat(200), 'b'.repeat(200), 'c'.repeat(200))
    refuses(path, /Cannot open the database .*: .*the length of the path/)
  })

  it('is refused when another process holds its lock and it has to be brought up to date', () => {
    const path = join(newFolder(), 'plants.db')
    copyFileSync(oldFile, path)
    using other = new DatabaseSync(path)
    other.exec('PRAGMA journal_mode = WAL; BEGIN IMMEDIATE')
    assert.throws(
      () => openConnection(path, { timeoutMs: 50 }),
      (error) => error instanceof UnusableStore && /database is locked/.test(error.message),
    )
  })

  it('is refused when its name is too long for the files beside it, and leaves none', () => {
    const folder = newFolder()
    refuses(join(folder, 'a'.repeat(229)), /Cannot open the database .*: .*the length of the path/)
    assert.deepEqual(readdirSync(folder), [])
    openConnection(join(folder, 'a'.repeat(228))).close()
  })

  it('is refused when it may not be written', async () => {
    const folder = newFolder()
    const path = join(folder, 'plants.db')
    openConnection(path).close()
    chmodSync(folder, 0o755)
    chmodSync(path, 0o444)
    await withoutRights(() => refuses(path, /Cannot open the database .*: permission denied/))
  })
})
