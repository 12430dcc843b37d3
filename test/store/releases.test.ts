import assert from 'node:assert/strict'
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { query } from '../support/postgres.ts'
import { openPostgresStore, openSqliteStore } from '../support/stores.ts'

const fixtures = join(import.meta.dirname, 'fixtures')
const postgresql = engines.find(({ name }) => name === 'PostgreSQL') as (typeof engines)[number]

/** Opens a store that release 1.0.0 has made: its schema, plants, a token and a key. */
const openers: Record<string, () => Promise<Store>> = {
  async SQLite() {
    const path = join(newFolder(), 'plants.db')
    copyFileSync(join(fixtures, 'release-1.0.0.db'), path)
    return openSqliteStore(path)
  },
  async PostgreSQL() {
    const url = await postgresql.newUrl()
    await query(url, readFileSync(join(fixtures, 'release-1.0.0.sql'), 'utf8'))
    return openPostgresStore(url)
  },
}

for (const [name, open] of Object.entries(openers)) {
  describe(`a store of release 1.0.0 on ${name}`, () => {
    it('keeps its plants, its token and its key, and begins a journal', async () => {
      const store = await open()
      const { plants } = await store.listPlants({ after: undefined, tag: undefined, limit: 10 })
      assert.deepEqual(
        plants.map(({ id, name, tag }) => [id, name, tag]),
        [
          [-(2n ** 63n), '', ''],
          [1n, 'Monstera', 'indoor'],
          [2n, 'Keyed', undefined],
          [2n ** 63n - 1n, 'Kaktus "ü" 🌵\n', undefined],
        ],
      )
      const indoor = await store.listIds({ after: undefined, tag: 'indoor', limit: 10 })
      assert.deepEqual(indoor, [1n])
      const [token] = await store.listTokens()
      assert.deepEqual([token?.name, token?.scopes], ['reader', ['plants:read']])
      assert.deepEqual(await store.findToken(token?.hash ?? Buffer.alloc(0)), token)
      assert.equal(await store.forgetKeys(0), true)
      const key = { tokenId: 'operator', key: 'first-key' }
      const again = await store.createPlantOnce({ id: 2n, name: 'Keyed' }, key)
      // After a day, the key counts no more, and the id is taken.
      assert.ok(again === 'exists' || (typeof again === 'object' && again.isReplay))
      const page = await store.readJournal('oldest', 10)
      assert.ok(typeof page === 'object')
      assert.deepEqual(page.events, [])
      await store.deletePlant(2n, {})
      const next = await store.readJournal(page.end, 10)
      assert.ok(typeof next === 'object')
      assert.deepEqual(
        next.events.map(({ type, plant }) => [type, plant]),
        [['plant.deleted', { id: 2n, name: 'Keyed' }]],
      )
    })
  })
}
