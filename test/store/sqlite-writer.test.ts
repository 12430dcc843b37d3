import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { Failure } from '../../src/contract/errors.ts'
import { busyTimeoutMs, openConnection } from '../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { breakSync } from '../support/broken-sync.ts'
import { stopClock } from '../support/clock.ts'
import { everyEngine } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { newReceiver, newSaved, newTaken } from '../support/receiver-record.ts'
import { releaseAfterTest, runOnce } from '../support/release.ts'
import { startService } from '../support/service.ts'
import { closeAfterTest, openSqliteStore as open } from '../support/stores.ts'
import { findWriterLocation } from '../support/writer-location.ts'

const locations = ['in place', 'thread'] as const
const sqliteEngines = everyEngine.filter(({ name }) => name.startsWith('SQLite'))

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
  for (const [where, writer, expected] of [
    ['in a file', 'in place', 'in place'],
    ['in a file', 'thread', 'thread'],
    ['in memory', 'thread', 'in place'],
  ] as const) {
    it(`commits ${expected} when it is told "${writer}" ${where}`, async () => {
      const store = open(where === 'in memory' ? ':memory:' : newPath(), { writer })
      assert.equal(await findWriterLocation(store, 1n), expected)
      assert.equal(await findWriterLocation(store, 2n), expected)
      assert.equal((await store.getPlant(2n))?.name, 'x')
    })
  }

  const newTimes = (lastSuccessAt: number) => ({
    lastSuccessAt,
    lastFailureAt: undefined,
    lastFailure: undefined,
    failingSince: undefined,
  })

  /** A store with a receiver, and writes of its sender and of others. */
  async function openWithReceiver() {
    const path = newPath()
    const store = open(path, { writer: 'in place' })
    await store.receivers.add(newReceiver())
    const [claim = assert.fail()] = await store.receivers.claim('one', 60_000)
    let count = 0
    let before = 'start'
    // SQLite writes nothing for values that are there already.
    const take = () => {
      const taken = newTaken({ ...claim, before, position: `${++count}` })
      before = taken.position
      return store.receivers.take('one', taken)
    }
    const save = () => store.receivers.save('one', newSaved({ ...claim, times: newTimes(++count) }))
    const create = () => store.createPlant({ id: 1n, name: 'x' })
    const resume = () => store.receivers.change('whk_1', { kind: 'resume' })
    return { path, writes: { take, save, create, resume } }
  }

  for (const [kinds, isSynced] of [
    [['take'], false],
    [['save'], false],
    [['save', 'take'], false],
    [['save', 'create', 'take'], true],
    [['create'], true],
    [['resume'], true],
  ] as const) {
    it(`${isSynced ? 'syncs' : 'does not sync'} a commit of ${kinds}`, async () => {
      const { path, writes } = await openWithReceiver()
      // The last commit, which is not synced, must not matter for the next one.
      await writes.take()
      breakSync(`${path}-wal`)
      const written = Promise.all(kinds.map((kind) => writes[kind]()))
      if (isSynced) await assert.rejects(written, { number: 50400 })
      else await written
    })
  }

  for (const fault of ['disk full', 'not confirmed'] as const) {
    it(`logs the same of a store that is ${fault}, in place and from the thread`, async () => {
      const logged = []
      for (const { openWithFault } of sqliteEngines) {
        const { store } = await openWithFault(fault)
        const service = await startService('sqlite::memory:', { store })
        await service.create(`{"id":9,"name":"${'x'.repeat(100_000)}"}`)
        const { time: _, requestId: __, err, ...line } = JSON.parse(service.log[0] ?? '')
        logged.push({ ...line, err: { ...err, stack: err.stack.split('\n').slice(0, 2) } })
      }
      assert.deepEqual(logged[0], logged[1])
    })
  }

  for (const location of locations) {
    it(`waits for the lock of another process, while others read: ${location}`, async () => {
      const path = newPath()
      const store = open(path, { writer: location })
      await store.createPlant({ id: 0n, name: 'first' })
      const release = lock(path)
      const created = store.createPlant({ id: 1n, name: 'x' })
      await sleep(2 * busyTimeoutMs)
      assert.equal((await store.getPlant(0n))?.name, 'first')
      assert.equal(await store.getPlant(1n), undefined)
      await release()
      assert.equal(typeof (await created), 'bigint')
      assert.equal((await store.getPlant(1n))?.name, 'x')
    })
  }

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
    lock(path)
    const clock = stopClock(t)
    const refused: number[] = []
    for (let id = 0n; id < 10n; id++) {
      store.createPlant({ id, name: 'x' }).catch(({ number }) => refused.push(number))
    }
    let waitedMs = 0
    for (; refused.length < 10 && waitedMs < 5_000; waitedMs += 50) {
      clock.advance(50)
      await sleep(5)
    }
    assert.deepEqual(refused, Array(10).fill(50301))
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
