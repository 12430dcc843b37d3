import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import type { Snapshot } from '../../src/store/store.ts'
import { newFolder } from '../support/folder.ts'
import { releaseAfterTest } from '../support/release.ts'
import { everything, listIds, openSqliteStore } from '../support/stores.ts'
import { oldJournals } from './old-stores.ts'

const megabyte = 1024 * 1024
/** How often the store looks at the size of its log. */
const pollMs = 200
const log = { refuseBytes: 2 * megabyte, endBytes: 6 * megabyte }

/** A store, the size of its log, and what makes that grow. */
async function open(bounds = log) {
  const path = join(newFolder(), 'plants.db')
  const store = openSqliteStore(path, { wal: bounds })
  let id = 0n
  const name = 'x'.repeat(100_000)
  return {
    path,
    store,
    logBytes: () => statSync(`${path}-wal`).size,
    async write() {
      await store.createPlant({ id: id++, name })
    },
  }
}

async function walk(snapshot: Snapshot): Promise<number> {
  let count = 0
  for await (const plants of snapshot.walkPlants(everything)) count += plants.length
  return count
}

describe('the log of a SQLite store during exports', () => {
  it('allows no new snapshot while it is large, and refusals take no place', async () => {
    const { store, logBytes, write } = await open()
    await write()
    const first = await store.openSnapshot()
    while (logBytes() < log.refuseBytes) await write()
    for (let count = 0; count < 10; count++) {
      await assert.rejects(store.openSnapshot('tok_a'), { number: 50300 })
    }
    assert.equal(await walk(first), 1)
    await first.close()
    await write()
    const next = await store.openSnapshot('tok_a')
    assert.ok((await walk(next)) > 1)
    await next.close()
  })

  it('ends snapshots when it becomes too large', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { store, logBytes, write } = await open()
    await write()
    const snapshot = await store.openSnapshot()
    releaseAfterTest(snapshot.close)
    while (logBytes() <= log.endBytes) await write()
    t.mock.timers.tick(pollMs)
    await assert.rejects(walk(snapshot), { number: 50300 })
  })

  it('ends no snapshot that was opened when it was already too large', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { path, store, logBytes, write } = await open()
    await write()
    {
      using backup = new DatabaseSync(path)
      backup.exec('BEGIN; SELECT * FROM plants')
      while (logBytes() <= log.endBytes) await write()
    }
    const snapshot = await store.openSnapshot()
    releaseAfterTest(snapshot.close)
    t.mock.timers.tick(pollMs)
    assert.ok((await walk(snapshot)) > 1)
    await write()
    t.mock.timers.tick(pollMs)
    await assert.rejects(walk(snapshot), { number: 50300 })
  })

  it('shrinks after the last snapshot is closed', async () => {
    const { store, logBytes, write } = await open({ refuseBytes: 0, endBytes: 100 * megabyte })
    await write()
    const snapshot = await store.openSnapshot()
    for (let count = 0; count < 300; count++) await write()
    const largest = logBytes()
    assert.ok(largest > 20 * megabyte)
    await snapshot.close()
    for (let count = 0; count < 60; count++) await write()
    assert.ok(logBytes() <= 16 * megabyte, `${logBytes()} bytes`)
  })
})

describe('tags of a megabyte', () => {
  it('have a place of their own in the index, however much they have in common', async () => {
    const { path, store } = await open()
    const tags = Array.from({ length: 200 }, (_, index) => `${'a'.repeat(100)}${index}`)
    await Promise.all(
      tags.map((tag, index) => store.createPlant({ id: BigInt(index), name: 'x', tag })),
    )
    await store.replacePlant({ id: 0n, name: 'x', tag: `${tags[0]}!` }, {})
    using db = openConnection(path)
    const statement = db.prepare(
      'SELECT count(DISTINCT coalesce(tag_key, tag)) AS places FROM plants INDEXED BY plants_by_tag WHERE tag IS NOT NULL',
    )
    assert.equal(statement.get()?.places, 200n)
    assert.deepEqual(await listIds(store, tags[0]), [])
    assert.deepEqual(await listIds(store, `${tags[0]}!`), [0n])
  })

  it('of an older release are found, too', async () => {
    const path = (await oldJournals[0]?.newUrl())?.replace('sqlite:', '') ?? assert.fail()
    const long = 'ä'.repeat(51)
    const tags = [long, `${long}1`, 'x', 'a'.repeat(100)]
    {
      using db = new DatabaseSync(path)
      const insert = db.prepare('INSERT INTO plants VALUES (?, ?, ?, 1)')
      for (const [index, tag] of tags.entries()) insert.run(9_000 + index, 'n', tag)
    }
    const store = openSqliteStore(path)
    for (const [index, tag] of tags.entries()) {
      assert.deepEqual(await listIds(store, tag), [9_000n + BigInt(index)])
    }
  })
})
