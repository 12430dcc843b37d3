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
import { buildSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { newFolder } from '../support/folder.ts'
import { newReceiver, newSaved, newTaken } from '../support/receiver-record.ts'
import { releaseAfterTest, runOnce } from '../support/release.ts'
import { closeAfterTest, openSqliteStore as open } from '../support/stores.ts'
import { newTokenRecord } from '../support/token-record.ts'
import { waitUntil } from '../support/wait.ts'
import { findWriterLocation } from '../support/writer-location.ts'

const locations = ['in place', 'thread'] as const
const token = newTokenRecord()

function newPath(): string {
  return join(newFolder(), 'plants.db')
}

/** Opens a store whose thread is ready. */
async function openWithThread(path: string): Promise<{ store: Store; worker: Worker }> {
  const started = once(process, 'worker')
  const store = open(path, { writer: 'thread' })
  const [worker] = await started
  await store.createPlant({ id: 0n, name: 'first' })
  return { store, worker }
}

/** Holds the lock of a database until the answered function is called or the test ends. */
function lock(path: string): () => Promise<void> {
  const other = new DatabaseSync(path)
  other.exec('BEGIN IMMEDIATE')
  const release = runOnce(async () => other.close())
  releaseAfterTest(release)
  return release
}

/** Whether another connection is in the middle of a transaction that writes. */
function isLocked(path: string): boolean {
  using other = new DatabaseSync(path)
  try {
    other.exec('BEGIN IMMEDIATE; ROLLBACK')
    return false
  } catch {
    return true
  }
}

describe('the writer of a SQLite store', () => {
  for (const location of locations) {
    it(`commits where it is told to: ${location}`, async () => {
      const store = open(newPath(), { writer: location })
      assert.equal(await findWriterLocation(store, 1n), location)
      assert.equal(await findWriterLocation(store, 2n), location)
      assert.equal((await store.getPlant(2n))?.name, 'x')
    })
  }

  it('commits in place on a disk that is not slow, without a thread', async () => {
    const workers: unknown[] = []
    const note = (worker: unknown) => workers.push(worker)
    process.on('worker', note)
    releaseAfterTest(() => process.off('worker', note))
    const store = open(newPath())
    assert.equal(await findWriterLocation(store, 1n), 'in place')
    await store.close()
    assert.deepEqual(workers, [])
  })

  it('syncs every commit but those with nothing else than deliveries of webhooks', async () => {
    const db = openConnection(newPath())
    const store = closeAfterTest(buildSqliteStore(db, { writer: 'in place' }))
    await store.receivers.add(newReceiver())
    const [claim] = await store.receivers.claim('one', 60_000)
    assert.ok(claim)
    const take = () => store.receivers.take('one', [newTaken(claim)])
    const save = () => store.receivers.save('one', [newSaved(claim)])
    const create = (id: bigint) => store.createPlant({ id, name: 'x' })
    const cases: [string, () => Promise<unknown>, level: bigint][] = [
      ['a take', take, 1n],
      ['a create after it', () => create(1n), 2n],
      ['a save', save, 1n],
      ['a revoked token after it', () => store.revokeToken('none', 1), 2n],
      ['a save and a create', () => Promise.all([save(), create(2n), take()]), 2n],
      ['a save and a take', () => Promise.all([save(), take()]), 1n],
      ['a change by the operator', () => store.receivers.change('whk_1', { kind: 'resume' }), 2n],
    ]
    for (const [name, write, level] of cases) {
      const syncs = async () => {
        const [[, { counts }] = assert.fail()] = (await store.measure()).fsyncSeconds
        return counts.reduce((sum, count) => sum + count)
      }
      const before = await syncs()
      await write()
      const { synchronous } = db.prepare('PRAGMA synchronous').get() ?? {}
      assert.equal(synchronous, level, name)
      assert.equal((await syncs()) - before, Number(level) - 1, name)
    }
  })

  it('commits in place in memory, whatever it is told', async () => {
    const store = open(':memory:', { writer: 'thread' })
    assert.equal(await findWriterLocation(store, 1n), 'in place')
  })

  it('reports the same failures from the thread as in place', async () => {
    const reported = []
    for (const writer of locations) {
      const store = open(newPath(), { writer })
      await store.addToken(token)
      const error = await store.addToken(token).catch((reason: unknown) => reason)
      assert.ok(error instanceof Error && error.stack?.includes('transactions.ts'))
      reported.push({ ...error, message: error.message })
    }
    assert.equal(reported[0]?.message, 'UNIQUE constraint failed: tokens.hash')
    assert.deepEqual(reported[0], reported[1])
  })

  it('passes a failure of the thread on with its number and its cause', () => {
    const cause = Object.assign(new Error('disk I/O error'), { errcode: 778, errstr: 'I/O' })
    const failure = new Failure(50400, 'Not confirmed.', { cause })
    const brought = toError(structuredClone(toErrorParts(failure)))
    assert.ok(brought instanceof Failure)
    assert.deepEqual(brought, failure)
    assert.equal(brought.stack, failure.stack)
  })

  it('shows no plant before its commit has ended', async () => {
    const path = newPath()
    const { store } = await openWithThread(path)
    const release = lock(path)
    const created = store.createPlant({ id: 1n, name: 'x' })
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(await store.getPlant(1n), undefined)
    await release()
    await created
    assert.equal((await store.getPlant(1n))?.name, 'x')
  })

  it('waits for the lock of another process, and reads in the meantime', async () => {
    const path = newPath()
    const { store } = await openWithThread(path)
    const release = lock(path)
    const created = store.createPlant({ id: 1n, name: 'x' })
    let turns = 0
    // Longer than one attempt to get the lock.
    while (turns < 50) await new Promise((resolve) => setTimeout(resolve, 1, ++turns))
    assert.equal((await store.getPlant(0n))?.name, 'first')
    await release()
    assert.equal(typeof (await created), 'bigint')
  })

  for (const location of locations) {
    it(`gives up when the lock is held for too long: ${location}`, async () => {
      const path = newPath()
      const store = open(path, { writer: location, lockTimeoutMs: 50 })
      await store.createPlant({ id: 1n, name: 'x' })
      const release = lock(path)
      await assert.rejects(async () => store.createPlant({ id: 2n, name: 'x' }), { number: 50301 })
      await release()
      assert.equal(await findWriterLocation(store, 2n), location)
    })
  }

  it('lets no write wait for the lock longer than the first, however many queue', async (t) => {
    const path = newPath()
    const store = open(path, { writer: 'in place', lockTimeoutMs: 1_000, batchItems: 1 })
    await store.createPlant({ id: 0n, name: 'x' })
    lock(path)
    let nowMs = performance.now()
    const startedAt = nowMs
    // The clock goes on by 10 ms whenever it is read.
    t.mock.method(performance, 'now', () => {
      nowMs += 10
      return nowMs
    })
    const created = Array.from({ length: 10 }, (_, id) =>
      store.createPlant({ id: BigInt(id), name: 'x' }),
    )
    for (const outcome of await Promise.allSettled(created)) {
      assert.equal(outcome.status === 'rejected' && outcome.reason.number, 50301)
    }
    assert.ok(nowMs - startedAt < 2_000, `${nowMs - startedAt} ms`)
  })

  it('finishes every waiting batch and empties the log when it is closed', async () => {
    const path = newPath()
    const store = open(path, { writer: 'thread', batchItems: 2 })
    const ids = Array.from({ length: 20 }, (_, index) => BigInt(index))
    const outcomes = ids.map((id) => store.createPlant({ id, name: 'x' }))
    await store.close()
    for (const outcome of outcomes) assert.equal(typeof (await outcome), 'bigint')
    assert.equal(existsSync(`${path}-wal`), false)
    const everything = { after: undefined, tag: undefined, limit: 100 }
    const { plants } = await open(path).listPlants(everything)
    assert.deepEqual(
      plants.map(({ id }) => id),
      ids,
    )
  })
})

describe('a thread that ends unexpectedly', () => {
  it('leaves the outcome of its batch open, and the store goes on in place', async () => {
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
    await release()
    assert.equal(typeof (await queued), 'bigint')
    assert.equal(await findWriterLocation(store, 4n), 'in place')
    assert.equal((await store.getPlant(0n))?.name, 'first')
  })

  it('releases the lock in the middle of a transaction, of which nothing is stored', async () => {
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
  })

  it('makes the store wait for ten times as many slow commits before the next one', async (t) => {
    let nowMs = performance.now()
    // The clock goes on by 5 ms whenever it is read: every commit in place is slow.
    t.mock.method(performance, 'now', () => {
      nowMs += 5
      return nowMs
    })
    const store = open(newPath())
    const workers: Worker[] = []
    const note = (worker: Worker) => workers.push(worker)
    process.on('worker', note)
    releaseAfterTest(() => process.off('worker', note))
    let id = 0n

    async function countUntilThread(started: number): Promise<number> {
      let commits = 0
      for (; workers.length < started; commits++) {
        assert.ok(commits < 1_000, 'no thread is started')
        await store.createPlant({ id: id++, name: 'x' })
        await new Promise((resolve) => setImmediate(resolve))
      }
      const isReady = async () => (await findWriterLocation(store, id++)) === 'thread'
      await waitUntil(isReady, 'the thread is ready')
      return commits
    }

    const first = await countUntilThread(1)
    await workers[0]?.terminate()
    assert.equal(await findWriterLocation(store, id++), 'in place')
    assert.ok((await countUntilThread(2)) >= 10 * first - 1)
  })

  it('changes nothing when it was at rest', async () => {
    const { store, worker } = await openWithThread(newPath())
    await worker.terminate()
    assert.equal(await findWriterLocation(store, 1n), 'in place')
  })

  it('leaves the store in place when it cannot open the file', async () => {
    const path = newPath()
    const db = openConnection(path)
    renameSync(path, `${path}.moved`)
    const store = closeAfterTest(buildSqliteStore(db, { writer: 'thread' }))
    await store.createPlant({ id: 1n, name: 'x' })
    assert.equal(await findWriterLocation(store, 2n), 'in place')
    assert.equal(existsSync(path), false)
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
      { encoding: 'utf8', timeout: 60_000 },
    )
    assert.deepEqual({ stdout, status }, { stdout: 'thread\n', status: 0 })
  })
})
