import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { Failure } from '../../src/contract/errors.ts'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { toError, toErrorParts } from '../../src/store/sqlite/error-parts.ts'
import { buildSqliteStore, type SqliteStoreOptions } from '../../src/store/sqlite/store.ts'
import type { Store, TokenRecord } from '../../src/store/store.ts'
import { newFolder } from '../support/folder.ts'
import { findWriterLocation } from '../support/writer-location.ts'

const places = ['in place', 'thread'] as const
const token: TokenRecord = {
  id: 'tok_1',
  hash: Buffer.alloc(32),
  name: 'test',
  scopes: ['plants:read'],
  createdAt: 1,
  expiresAt: undefined,
  revokedAt: undefined,
  lastUsedAt: undefined,
  lastFour: undefined,
}

function newPath(): string {
  return join(newFolder(), 'plants.db')
}

function open(path: string, options: SqliteStoreOptions): Store {
  return buildSqliteStore(openConnection(path), options)
}

/** A store whose thread is ready, and the thread. */
async function openWithThread(path: string): Promise<{ store: Store; worker: Worker }> {
  const started = once(process, 'worker')
  const store = open(path, { writer: 'thread' })
  const [worker] = await started
  await store.createPlant({ id: 0n, name: 'first' })
  return { store, worker }
}

/** Keeps the lock of a database until the answered function is called. */
function lock(path: string): () => void {
  const other = new DatabaseSync(path)
  other.exec('BEGIN IMMEDIATE')
  return () => other.close()
}

/** Whether somebody is in the middle of a transaction that writes. */
function isLocked(path: string): boolean {
  const other = new DatabaseSync(path)
  try {
    other.exec('BEGIN IMMEDIATE; ROLLBACK')
    return false
  } catch {
    return true
  } finally {
    other.close()
  }
}

describe('the writer of a SQLite store', () => {
  for (const place of places) {
    it(`commits where it is told to: ${place}`, async () => {
      const store = open(newPath(), { writer: place })
      assert.equal(await findWriterLocation(store, 1n), place)
      assert.equal(await findWriterLocation(store, 2n), place)
      assert.equal((await store.getPlant(2n))?.name, 'x')
      await store.close()
    })
  }

  it('commits in place on a disk that is not slow, without a thread', async () => {
    const store = open(newPath(), {})
    const workers: unknown[] = []
    const note = (worker: unknown) => workers.push(worker)
    process.on('worker', note)
    assert.equal(await findWriterLocation(store, 1n), 'in place')
    await store.close()
    process.off('worker', note)
    assert.deepEqual(workers, [])
  })

  it('commits in place in memory, whatever it is told', async () => {
    const store = buildSqliteStore(openConnection(':memory:'), { writer: 'thread' })
    assert.equal(await findWriterLocation(store, 1n), 'in place')
    await store.close()
  })

  it('reports from the thread the very failures that it reports in place', async () => {
    const told = []
    for (const writer of places) {
      const store = open(newPath(), { writer })
      await store.addToken(token)
      const error = await store.addToken(token).catch((reason: unknown) => reason)
      assert.ok(error instanceof Error && error.stack?.includes('transactions.ts'))
      told.push({ ...error, message: error.message })
      await store.close()
    }
    assert.equal(told[0]?.message, 'UNIQUE constraint failed: tokens.hash')
    assert.deepEqual(told[0], told[1])
  })

  it('brings a failure with its number and its cause over from the thread', () => {
    const cause = Object.assign(new Error('disk I/O error'), { errcode: 778, errstr: 'I/O' })
    const failure = new Failure(50400, 'Not confirmed.', { cause })
    const brought = toError(structuredClone(toErrorParts(failure)))
    assert.ok(brought instanceof Failure)
    assert.deepEqual(brought, failure)
    assert.equal(brought.stack, failure.stack)
  })

  it('shows no plant before its commit is over', async () => {
    const path = newPath()
    const { store } = await openWithThread(path)
    const release = lock(path)
    const created = store.createPlant({ id: 1n, name: 'x' })
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(await store.getPlant(1n), undefined)
    release()
    await created
    assert.equal((await store.getPlant(1n))?.name, 'x')
    await store.close()
  })

  it('waits for the lock of another process, and reads meanwhile', async () => {
    const path = newPath()
    const { store } = await openWithThread(path)
    const release = lock(path)
    const created = store.createPlant({ id: 1n, name: 'x' })
    let turns = 0
    // Longer than one look for the lock takes.
    while (turns < 50) await new Promise((resolve) => setTimeout(resolve, 1, ++turns))
    assert.equal((await store.getPlant(0n))?.name, 'first')
    release()
    assert.equal(typeof (await created), 'bigint')
    await store.close()
  })

  for (const place of places) {
    it(`gives up when the lock is held for too long: ${place}`, async () => {
      const path = newPath()
      const store = open(path, { writer: place, lockTimeoutMs: 50 })
      await store.createPlant({ id: 1n, name: 'x' })
      const release = lock(path)
      await assert.rejects(async () => store.createPlant({ id: 2n, name: 'x' }), { number: 50301 })
      release()
      assert.equal(await findWriterLocation(store, 2n), place)
      await store.close()
    })
  }

  it('finishes every batch that waits when it is closed, and empties the log', async () => {
    const path = newPath()
    const store = open(path, { writer: 'thread', batchItems: 2 })
    const ids = Array.from({ length: 20 }, (_, index) => BigInt(index))
    const outcomes = ids.map((id) => store.createPlant({ id, name: 'x' }))
    await store.close()
    for (const outcome of outcomes) assert.equal(typeof (await outcome), 'bigint')
    assert.equal(existsSync(`${path}-wal`), false)
    const after = open(path, {})
    const ofAll = { after: undefined, tag: undefined, limit: 100 }
    assert.deepEqual(await after.listIds(ofAll), ids)
    await after.close()
  })
})

describe('a thread that ends by itself', () => {
  it('leaves open what became of its batch, and the store goes on in place', async () => {
    const path = newPath()
    const { store, worker } = await openWithThread(path)
    const release = lock(path)
    const created = [1n, 2n].map((id) => store.createPlant({ id, name: 'x' }))
    const outcomes = Promise.allSettled(created)
    await new Promise((resolve) => setImmediate(resolve))
    const queued = store.createPlant({ id: 3n, name: 'x' })
    await worker.terminate()
    for (const outcome of await outcomes) {
      assert.equal(outcome.status === 'rejected' && outcome.reason.number, 50400)
    }
    release()
    assert.equal(typeof (await queued), 'bigint')
    assert.equal(await findWriterLocation(store, 4n), 'in place')
    assert.equal((await store.getPlant(0n))?.name, 'first')
    await store.close()
  })

  it('lets go of the lock in the middle of a transaction, which leaves nothing behind', async () => {
    const path = newPath()
    const { store, worker } = await openWithThread(path)
    const plants = Array.from({ length: 50_000 }, (_, index) => ({ id: BigInt(index), name: 'x' }))
    const imported = store.importPlants(plants, 'replace').catch((reason: unknown) => reason)
    while (!isLocked(path)) await new Promise((resolve) => setImmediate(resolve))
    await worker.terminate()
    const outcome = await imported
    assert.equal(outcome instanceof Failure && outcome.number, 50400)
    assert.equal(await findWriterLocation(store, 1n), 'in place')
    assert.equal((await store.getPlant(0n))?.name, 'first')
    await store.close()
  })

  it('is missed by nobody when it was at rest', async () => {
    const { store, worker } = await openWithThread(newPath())
    await worker.terminate()
    assert.equal(await findWriterLocation(store, 1n), 'in place')
    await store.close()
  })

  it('leaves the store in place when it cannot even open the file', async () => {
    const path = newPath()
    const db = openConnection(path)
    renameSync(path, `${path}.moved`)
    const store = buildSqliteStore(db, { writer: 'thread' })
    await store.createPlant({ id: 1n, name: 'x' })
    assert.equal(await findWriterLocation(store, 2n), 'in place')
    assert.equal(existsSync(path), false)
    await store.close()
  })
})

describe('a thread at rest', () => {
  it('keeps no process alive', () => {
    const toUrl = (path: string) => new URL(path, import.meta.url).href
    const script = `
      import { openConnection } from '${toUrl('../../src/store/sqlite/connection.ts')}'
      import { buildSqliteStore } from '${toUrl('../../src/store/sqlite/store.ts')}'
      import { findWriterLocation } from '${toUrl('../support/writer-location.ts')}'
      const store = buildSqliteStore(openConnection('${newPath()}'), { writer: 'thread' })
      await store.createPlant({ id: 1n, name: 'x' })
      console.log(await findWriterLocation(store, 2n))`
    const { stdout, status } = spawnSync(
      process.execPath,
      ['--input-type=module', '--eval', script],
      { encoding: 'utf8', timeout: 10_000 },
    )
    assert.deepEqual({ stdout, status }, { stdout: 'thread\n', status: 0 })
  })
})
