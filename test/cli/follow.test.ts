import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { MirrorChange } from '../../client/index.ts'
import { writeChanges } from '../../src/cli/follower.ts'
import type { Store } from '../../src/store/store.ts'
import { run, start } from '../support/command.ts'
import { type Engine, engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { operatorToken, startService } from '../support/service.ts'
import { openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'

/** The arguments of `follow`, with the token in a file. */
function toArgs(from: string, to: string, token: string): string[] {
  const tokenFile = join(newFolder(), 'token')
  writeFileSync(tokenFile, `${token}\n`)
  return ['follow', '--from', from, '--token-file', tokenFile, '--to', to]
}

/** Starts `follow` as a process. */
function follow(from: string, to: string) {
  return start(toArgs(from, to, operatorToken), { folder: newFolder() })
}

/** Runs a `follow` that ends by itself. */
function runFollow(from: string, to: string, token = operatorToken) {
  return run(toArgs(from, to, token), { folder: newFolder() })
}

async function readPlants(store: Store): Promise<string[]> {
  const { plants } = await store.listPlants({ after: undefined, tag: undefined, limit: 10_000 })
  return plants.map(({ id, name, tag }) => `${id} ${name} ${tag}`)
}

/** Waits until the copy is the source, at a position. */
async function waitForCopy(source: Store, copy: Store): Promise<void> {
  await waitUntil(async () => {
    const followed = await copy.readFollowed()
    return followed?.position !== undefined && followed.position === (await source.journalEnd())
  }, 'the copy has every change')
  assert.deepEqual(await readPlants(copy), await readPlants(source))
}

async function prepare(engine: Engine) {
  const sourceUrl = await engine.newUrl()
  const service = await startService(sourceUrl)
  const to = await engine.newUrl()
  const copy = await engine.open(to)
  return { service, source: service.store, to, copy }
}

const some = Array.from({ length: 1_100 }, (_, id) => ({
  id: BigInt(id) * 7n - 900n,
  name: `plant ${id}`,
}))

for (const engine of engines) {
  describe(`plant-store follow, on ${engine.name}`, () => {
    it('fills a store, goes on where it was, and begins again when that is gone', async () => {
      const { service, source, to, copy } = await prepare(engine)
      await source.importPlants(some, 'keep')
      await source.createPlant({ id: 2n ** 63n - 1n, name: 'last', tag: '' })
      const first = follow(service.url, to)
      await waitForCopy(source, copy)
      await source.deletePlant(-900n, {})
      await source.replacePlant({ id: -893n, name: 'other', tag: '🌵' }, {})
      await waitForCopy(source, copy)
      first.child.kill('SIGTERM')
      const ended = await first.ended
      assert.equal(ended.exitCode, 0, ended.stderr)
      assert.ok(!ended.stderr.includes(operatorToken))
      const before = await copy.journalEnd()
      await source.createPlant({ id: -(2n ** 63n), name: 'first' })
      const second = follow(service.url, to)
      await waitForCopy(source, copy)
      const journal = await copy.readJournal(before, 10)
      assert.ok(typeof journal !== 'string')
      assert.equal(journal.events.length, 1)
      second.child.kill('SIGINT')
      assert.equal((await second.ended).exitCode, 0)
      for (const id of [-(2n ** 63n), 100n * 7n - 900n, 2n ** 63n - 1n]) {
        await source.deletePlant(id, {})
      }
      await source.createPlant({ id: 5n ** 20n, name: 'new' })
      while (!(await source.trimJournal(Number.MAX_SAFE_INTEGER)));
      follow(service.url, to)
      await waitForCopy(source, copy)
    })

    it('leaves one of two processes on one copy, which stays true', async () => {
      const { service, source, to, copy } = await prepare(engine)
      await source.importPlants(some, 'keep')
      const both = [follow(service.url, to), follow(service.url, to)]
      const ended = Promise.race(both.map(({ ended }) => ended))
      let isOver = false
      void ended.then(() => {
        isOver = true
      })
      // Only a change shows one of them that the other has written.
      await waitUntil(async () => {
        await source.replacePlant({ id: 7n, name: `${Math.random()}` }, {})
        await waitForCopy(source, copy)
        return isOver
      }, 'one of them ends')
      const { exitCode, stderr } = await ended
      assert.match(stderr, /^Another process writes to the copy \S+, so this one has stopped\.$/m)
      assert.equal(exitCode, 65)
      await source.deletePlant(7n, {})
      await waitForCopy(source, copy)
    })

    it('refuses a store with plants of its own, and one that something else changed', async () => {
      const { service, source, to, copy } = await prepare(engine)
      await copy.createPlant({ id: 1n, name: 'mine' })
      const refused = await runFollow(service.url, to)
      assert.match(refused.stderr, /holds plants and is no copy of http:\S+ Nothing was written/)
      assert.equal(refused.exitCode, 65)
      await copy.deletePlant(1n, {})
      await source.createPlant({ id: 2n, name: 'theirs' })
      const first = follow(service.url, to)
      await waitForCopy(source, copy)
      first.child.kill('SIGTERM')
      await first.ended
      await copy.createPlant({ id: 1n, name: 'mine' })
      const again = await runFollow(service.url, to)
      assert.match(again.stderr, /was changed by something else/)
      assert.equal(again.exitCode, 65)
      const other = await runFollow('http://127.0.0.1:9', to)
      assert.match(other.stderr, /is a copy of http:/)
      assert.deepEqual(await readPlants(copy), ['1 mine undefined', '2 theirs undefined'])
    })
  })
}

describe('plant-store follow', () => {
  it('names the flag of a copy that cannot be opened', async () => {
    const { exitCode, stderr } = await runFollow('http://127.0.0.1:9', 'postgres://127.0.0.1/?x=y')
    assert.match(stderr, /^--to has an unknown parameter x: /)
    assert.equal(exitCode, 78)
  })

  it('ends when the service rejects its token, and has made no store before', async () => {
    const service = await startService('sqlite::memory:')
    const folder = newFolder()
    const to = `sqlite:${folder}/copy.db`
    const { exitCode, stderr } = await runFollow(service.url, to, 'x'.repeat(30))
    assert.match(stderr, /^The service rejected the token/)
    assert.equal(exitCode, 77)
    assert.deepEqual(readdirSync(folder), [])
  })

  it('removes a plant that was still being written when the source began again', async () => {
    const copy = openSqliteStore(join(newFolder(), 'copy.db'))
    const slowly: Store['followChanges'] = async (changes) => {
      for (let turn = 0; turn < 100; turn++) await nextTurn()
      return copy.followChanges(changes)
    }
    const synced = Promise.withResolvers<void>()
    async function* toChanges(): AsyncGenerator<MirrorChange> {
      const plant = { id: 9n, name: 'deleted meanwhile' }
      yield { type: 'plant.created', position: 'first', at: new Date(0).toISOString(), plant }
      yield { type: 'reset' }
      yield { type: 'synced', position: 'second' }
      await synced.promise
    }
    await writeChanges({
      store: { ...copy, followChanges: slowly },
      source: 'http://127.0.0.1:9',
      revision: 0,
      changes: toChanges(),
      onWritten: ({ position }) => position === 'second' && synced.resolve(),
      onFailed: synced.reject,
    })
    assert.deepEqual(await readPlants(copy), [])
  })
})
