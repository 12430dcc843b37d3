import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { busyTimeoutMs } from '../../src/store/sqlite/connection.ts'
import { breakSync } from '../support/broken-sync.ts'
import { stopClock } from '../support/clock.ts'
import { sqlite } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { newReceiver, newSaved, newTaken } from '../support/receiver-record.ts'
import { openSqliteStore } from '../support/stores.ts'

function openNew(options?: Parameters<typeof openSqliteStore>[1]) {
  const path = join(newFolder(), 'plants.db')
  return { path, store: openSqliteStore(path, options) }
}

describe('the writer of a SQLite store', () => {
  it('commits in the turn of the event loop in which its batch begins', async () => {
    const { store } = openNew()
    let isStored = false
    const created = store.createPlant({ id: 1n, name: 'x' }).then(() => {
      isStored = true
    })
    // Runs after the commit, in the same turn.
    await new Promise((resolve) => setImmediate(resolve))
    assert.ok(isStored)
    await created
  })

  const newTimes = (lastSuccessAt: number) => ({
    lastSuccessAt,
    lastFailureAt: undefined,
    lastFailure: undefined,
    failingSince: undefined,
  })

  /** A store with a receiver, and writes of its sender and of others. */
  async function openWithReceiver() {
    const { path, store } = openNew()
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

  it('waits for the lock of another process, while others read', async () => {
    const { path, store } = openNew()
    await store.createPlant({ id: 0n, name: 'first' })
    const release = await sqlite.block(path)
    const created = store.createPlant({ id: 1n, name: 'x' })
    await sleep(2 * busyTimeoutMs)
    assert.equal((await store.getPlant(0n))?.name, 'first')
    assert.equal(await store.getPlant(1n), undefined)
    await release()
    assert.equal(typeof (await created), 'bigint')
    assert.equal((await store.getPlant(1n))?.name, 'x')
  })

  it('lets no write wait for the lock longer than the first, however many queue', async (t) => {
    const { path, store } = openNew({ lockTimeoutMs: 1_000, batchItems: 1 })
    await sqlite.block(path)
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

  it('empties the log when it is closed', async () => {
    const { path, store } = openNew()
    await store.createPlant({ id: 1n, name: 'x' })
    assert.ok(existsSync(`${path}-wal`))
    await store.close()
    assert.equal(existsSync(`${path}-wal`), false)
  })
})
