import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { openConnection, requireSyncs } from '../../src/store/sqlite/connection.ts'
import { openReserve } from '../../src/store/sqlite/reserve.ts'
import { buildSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store, TokenRecord } from '../../src/store/store.ts'
import { run } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { nobody, withoutRights } from '../support/rights.ts'
import { startService } from '../support/service.ts'
import { closeAfterTest, openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'

const mebibyte = 1024 * 1024

function newReserve() {
  const path = join(newFolder(), 'plants.db')
  return { reserve: openReserve(path), file: `${path}-reserve` }
}

describe('the reserve for a full disk', () => {
  it('is a file of real bytes that only its owner may read', () => {
    const { reserve, file } = newReserve()
    reserve.restock()
    const { size, blocks, mode } = statSync(file)
    assert.equal(size, 2 * mebibyte)
    assert.ok(blocks * 512 >= size, `${blocks} blocks`)
    assert.equal(mode & 0o777, 0o600)
    assert.equal(reserve.size(), size)
    assert.match(readFileSync(file, 'latin1'), /^Plant Store keeps this space for a full disk/)
  })

  it('is removed while it is given back, and made again as large as wanted', () => {
    const { reserve, file } = newReserve()
    assert.equal(reserve.release(), 0)
    reserve.restock()
    assert.equal(reserve.release(), 2 * mebibyte)
    assert.equal(existsSync(file), false)
    assert.equal(reserve.release(), 0)
    reserve.take(100_000)
    assert.equal(statSync(file).size, 100_000)
    reserve.restock()
    assert.equal(statSync(file).size, 2 * mebibyte)
  })

  for (const bytes of [0, 10, 64, 1_000, mebibyte]) {
    it(`is completed after a crash that left ${bytes} bytes of it`, () => {
      const { reserve, file } = newReserve()
      reserve.restock()
      truncateSync(file, bytes)
      reserve.restock()
      assert.equal(reserve.size(), 2 * mebibyte)
      assert.equal(statSync(file).size, 2 * mebibyte)
    })
  }

  it('never touches what somebody else has put in its place', () => {
    const foreign: Record<string, (file: string) => void> = {
      file: (file) => writeFileSync(file, 'notes of somebody else, longer than the mark'.repeat(5)),
      'short file': (file) => writeFileSync(file, 'notes'),
      folder: (file) => mkdirSync(file),
      link(file) {
        writeFileSync(`${file}-target`, '')
        symlinkSync(`${file}-target`, file)
      },
    }
    for (const [kind, put] of Object.entries(foreign)) {
      const { reserve, file } = newReserve()
      put(file)
      const read = () => (kind === 'folder' ? readdirSync(file) : readFileSync(file))
      const before = read()
      reserve.restock()
      reserve.take(1_000)
      assert.equal(reserve.release(), 0, kind)
      assert.deepEqual(read(), before, kind)
    }
  })

  const skip = process.getuid?.() === 0 ? false : 'only root can change the owner of a file'
  it('belongs to the owner of the database, though root makes it', { skip }, () => {
    const { reserve, file } = newReserve()
    const database = file.replace('-reserve', '')
    writeFileSync(database, '')
    chownSync(database, nobody, nobody)
    reserve.restock()
    const { uid, gid } = statSync(file)
    assert.deepEqual([uid, gid], [nobody, nobody])
  })

  it('is done without where it cannot be made', async () => {
    const { reserve, file } = newReserve()
    chmodSync(dirname(file), 0o555)
    await withoutRights(() => reserve.restock())
    assert.equal(existsSync(file), false)
  })

  it('is made by a service, and is no part of a backup', async () => {
    const folder = newFolder()
    const url = `sqlite:${join(folder, 'plants.db')}`
    const service = await startService(url)
    await waitUntil(() => existsSync(join(folder, 'plants.db-reserve')), 'there is a reserve')
    await run(['backup', 'copy.db', '--database', url], { folder })
    await service.close()
    const { exitCode } = await run(['restore', 'copy.db', '--database', 'sqlite:new.db'], {
      folder,
    })
    assert.equal(exitCode, 0)
    assert.ok(statSync(join(folder, 'new.db')).size < mebibyte)
    const files = ['copy.db', 'new.db', 'plants.db', 'plants.db-reserve']
    assert.deepEqual(readdirSync(folder).sort(), files)
  })

  it('is not made by a command', async () => {
    const folder = newFolder()
    await run(['token', 'create', '--name', 'x', '--create'], { folder })
    assert.deepEqual(readdirSync(join(folder, 'data')), ['plant-store.db'])
  })
})

const token: TokenRecord = {
  id: 'tok_1',
  hash: Buffer.alloc(32, 1),
  name: 'x',
  scopes: ['plants:read'],
  createdAt: 0,
  expiresAt: undefined,
  revokedAt: undefined,
  lastUsedAt: undefined,
  lastFour: 'abcd',
}

/**
 * A store on a disk that is full as long as the reserve is there: a commit that changes something
 * fails as SQLite lets it fail. After this many commits without the reserve, the disk breaks.
 */
async function openFull(name = 'x', commits = Number.POSITIVE_INFINITY) {
  const path = join(newFolder(), 'plants.db')
  const first = openSqliteStore(path)
  await first.addToken(token)
  for (let id = 1n; id <= 20n; id++) await first.createPlant({ id, name })
  await first.close()
  const file = `${path}-reserve`
  const db = openConnection(path)
  let changes: bigint | undefined
  const total = db.prepare('SELECT total_changes() AS changes')
  const count = () => total.get()?.changes as bigint
  const failing = new Proxy(db, {
    get(target, name) {
      const value = Reflect.get(target, name, target)
      if (name !== 'prepare') return typeof value === 'function' ? value.bind(target) : value
      return (sql: string) => toFailing(sql, target.prepare(sql))
    },
  })

  function toFailing(sql: string, statement: StatementSync) {
    if (sql === 'BEGIN IMMEDIATE') {
      const run = statement.run.bind(statement)
      return Object.assign(statement, {
        run() {
          changes = count()
          return run()
        },
      })
    }
    if (sql !== 'COMMIT') return statement
    const run = statement.run.bind(statement)
    return Object.assign(statement, {
      run() {
        if (existsSync(file) && count() !== changes) {
          throw Object.assign(new Error('database or disk is full'), { errcode: 13 })
        }
        if (count() !== changes && commits-- <= 0) {
          throw Object.assign(new Error('disk I/O error'), { errcode: 10 })
        }
        return run()
      },
    })
  }

  const store = closeAfterTest(buildSqliteStore(failing as DatabaseSync))
  const reserve = openReserve(path)
  reserve.restock()
  return { store, reserve, file }
}

const full = { number: 50700 }

describe('a store on a full disk with a reserve', () => {
  const allowed: Record<string, (store: Store) => Promise<unknown>> = {
    'a delete': (store) => store.deletePlant(1n, {}),
    'a revocation': (store) => store.revokeToken(token.id, 1),
    'the deletion of tokens': (store) => store.deleteTokens([token.id]),
    'a trim of the journal': (store) => store.trimJournal(Number.MAX_SAFE_INTEGER),
    'a drop of changes': (store) => store.dropChanges(1, 1),
  }
  for (const [title, write] of Object.entries(allowed)) {
    it(`lets ${title} through, and has its reserve again`, async () => {
      const { store, reserve } = await openFull()
      await assert.rejects(store.createPlant({ id: 100n, name: 'x' }), full)
      await write(store)
      assert.equal(reserve.size(), 2 * mebibyte)
      await assert.rejects(store.createPlant({ id: 100n, name: 'x' }), full)
    })
  }

  it('refuses the other writes of a batch, and no more', async () => {
    const { store } = await openFull()
    const settled = await Promise.allSettled([
      store.createPlant({ id: 100n, name: 'x' }),
      store.deletePlant(1n, {}),
      store.createPlant({ id: 101n, name: 'x' }),
      store.revokeToken(token.id, 1),
    ])
    assert.deepEqual(
      settled.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.number)),
      [50700, 'deleted', 50700, 'revoked'],
    )
    assert.equal(await store.getPlant(100n), undefined)
    assert.equal(await store.getPlant(1n), undefined)
    assert.equal((await store.listTokens())[0]?.revokedAt, 1)
  })

  it('refuses the deletes that do not fit into one transaction', async () => {
    // A transaction ends after 4 MiB of deleted plants.
    const { store } = await openFull('x'.repeat(mebibyte))
    const ids = Array.from({ length: 10 }, (_, index) => BigInt(index + 1))
    const outcomes = await Promise.allSettled(ids.map((id) => store.deletePlant(id, {})))
    const texts = outcomes.map((one) =>
      one.status === 'fulfilled' ? String(one.value) : one.reason.number,
    )
    assert.deepEqual(texts, [...Array(4).fill('deleted'), ...Array(6).fill(50700)])
  })

  it('leaves the outcome open of a delete whose commit fails in another way', async () => {
    const { store } = await openFull('x', 0)
    await assert.rejects(store.deletePlant(1n, {}), { number: 50400 })
  })

  it('keeps the rest of its reserve for tokens', async () => {
    const { store, reserve } = await openFull()
    reserve.release()
    reserve.take(200 * 1024)
    await assert.rejects(store.deletePlant(1n, {}), full)
    assert.equal(await store.revokeToken(token.id, 1), 'revoked')
    assert.equal(reserve.size(), 200 * 1024)
  })
})

describe('a command that only reads', () => {
  it('makes no file: it does not prove that commits are synced', async () => {
    const folder = newFolder()
    const path = join(folder, 'plants.db')
    const store = openSqliteStore(path)
    await store.createPlant({ id: 1n, name: 'x' })
    for (const file of readdirSync(folder)) chmodSync(join(folder, file), 0o666)
    chmodSync(folder, 0o555)
    await withoutRights(async () => {
      using db = openConnection(path)
      assert.equal(db.prepare('SELECT count(*) AS plants FROM plants').get()?.plants, 1n)
      assert.throws(() => requireSyncs(db))
    })
    chmodSync(folder, 0o700)
  })
})
