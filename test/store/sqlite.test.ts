import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
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
import { dirname, join } from 'node:path'
import { constants, DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { maxSnapshots } from '../../src/store/snapshots.ts'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { setSynchronous } from '../../src/store/sqlite/database.ts'
import { identifyFile } from '../../src/store/sqlite/file.ts'
import { UnusableStore } from '../../src/store/store.ts'
import { schemaVersion } from '../../src/store/tables.ts'
import { newReceiver } from '../../src/webhooks/receiver.ts'
import { newFolder } from '../support/folder.ts'
import { isRefusal } from '../support/refusal.ts'
import { releaseAfterTest } from '../support/release.ts'
import { withoutRights } from '../support/rights.ts'
import { openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { oldFile } from './old-stores.ts'

const pageBytes = 4096

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
    writeFileSync(reserve, `notes of somebody else: ${mark}`)
    openConnection(path).close()
    assert.ok(existsSync(reserve))
    rmSync(reserve)
    execFileSync('mkfifo', [reserve])
    openConnection(path).close()
    assert.ok(existsSync(reserve))
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

  it('is opened and read while another process holds its lock', () => {
    const path = join(newFolder(), 'plants.db')
    openConnection(path).close()
    using other = new DatabaseSync(path)
    other.exec('BEGIN IMMEDIATE')
    using db = openConnection(path, { timeoutMs: 50 })
    assert.deepEqual(db.prepare('SELECT * FROM plants').all(), [])
  })
})

describe('a first start that a power cut ended', () => {
  const sectorBytes = 512

  /** The rollback journal of a transaction on an empty file, before the file is written. */
  function toJournal(): Buffer {
    const journal = Buffer.alloc(sectorBytes)
    Buffer.from('d9d505f920a163d7', 'hex').copy(journal)
    journal.writeUInt32BE(sectorBytes, 20)
    journal.writeUInt32BE(pageBytes, 24)
    return journal
  }

  /** The first sector of our database, without the rest of its page. */
  function toTornPage(): Buffer {
    const path = join(newFolder(), 'whole.db')
    openConnection(path).close()
    const page = Buffer.alloc(pageBytes)
    readFileSync(path).copy(page, 0, 0, sectorBytes)
    return page
  }

  for (const [what, toPage] of Object.entries({
    'the beginning of the file': () => Buffer.alloc(pageBytes),
    'all but the beginning of the file': toTornPage,
  })) {
    it(`is completed by the next start when the cut took ${what}`, async () => {
      const path = join(newFolder(), 'plants.db')
      writeFileSync(path, toPage())
      writeFileSync(`${path}-journal`, toJournal())
      const first = openSqliteStore(path)
      await first.createPlant({ id: 1n, name: 'x' })
      await first.close()
      assert.equal(identifyFile(path), 'ours')
      assert.equal((await openSqliteStore(path).getPlant(1n))?.name, 'x')
    })
  }
})

describe('the journal of a store on SQLite', () => {
  it('refuses a snapshot while no other connection can be opened', async () => {
    const path = join(newFolder(), 'plants.db')
    const store = openSqliteStore(path)
    renameSync(path, `${path}-moved`)
    // Attempts that fail take no place.
    for (let count = 0; count <= maxSnapshots; count++) {
      await assert.rejects(store.openSnapshot('a token'), { number: 50301 })
    }
    renameSync(`${path}-moved`, path)
    await (await store.openSnapshot('a token')).close()
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
    await store.receivers.add(newReceiver('http://127.0.0.1:1', [], position))
    assert.equal(wakes, before)
  })
})

describe('a file that cannot be the store', () => {
  function refuses(path: string, message: RegExp): void {
    const before = existsSync(path) && statSync(path).isFile() ? readFileSync(path) : undefined
    const files = readdirSync(dirname(path))
    assert.throws(() => openConnection(path), isRefusal(message))
    if (before) assert.deepEqual(readFileSync(path), before)
    assert.deepEqual(readdirSync(dirname(path)), files)
  }

  const noDatabase = /is not a database of Plant Store/
  type Case = [title: string, write: (path: string) => void, message: RegExp]
  const cases: Case[] = [
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
        db.exec(`PRAGMA user_version = ${schemaVersion + 1}`)
      },
      new RegExp(`schema ${schemaVersion + 1}, this one knows ${schemaVersion}`),
    ],
    ['a file of zeros', (path) => writeFileSync(path, Buffer.alloc(pageBytes)), noDatabase],
    [
      'a file of zeros beside a journal of another program',
      (path) => {
        writeFileSync(path, Buffer.alloc(pageBytes))
        writeFileSync(`${path}-journal`, 'the diary of a gardener')
      },
      noDatabase,
    ],
    [
      'a file of zeros beside a named pipe',
      (path) => {
        writeFileSync(path, Buffer.alloc(pageBytes))
        execFileSync('mkfifo', [`${path}-journal`])
      },
      /-journal: it is not a regular file\.$/,
    ],
    ...[100, 5_000, 20_000].map(
      (bytes): Case => [
        `a copy of only ${bytes} bytes`,
        (path) => writeFileSync(path, readFileSync(oldFile).subarray(0, bytes)),
        /^Cannot open the database .*: it is damaged; restore a backup\.$/,
      ],
    ),
    ['a folder', (path) => mkdirSync(path), /Cannot open the database/],
  ]
  for (const [title, write, message] of cases) {
    it(`is refused when it is ${title}, and stays as it is`, () => {
      const path = join(newFolder(), 'plants.db')
      write(path)
      refuses(path, message)
    })
  }

  it('is refused when another process holds its lock and it has to be brought up to date', () => {
    const path = join(newFolder(), 'plants.db')
    copyFileSync(oldFile, path)
    using other = new DatabaseSync(path)
    other.exec('PRAGMA journal_mode = WAL; BEGIN IMMEDIATE')
    const refusal = isRefusal(/database is locked/)
    assert.throws(() => openConnection(path, { timeoutMs: 50 }), refusal)
  })

  it('is refused when its name is too long for the files beside it, and leaves none', () => {
    const folder = newFolder()
    refuses(join(folder, 'a'.repeat(229)), /Cannot open the database .*: .*the length of the path/)
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
