import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { migrations as onPostgres } from '../../src/store/postgres/migrations.ts'
import { migrations as onSqlite } from '../../src/store/sqlite/migrations.ts'
import type { JournalEvent, Position } from '../../src/store/store.ts'
import { run, start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { startService } from '../support/service.ts'
import { readAll } from './journal-pages.ts'
import { oldFile, oldJournals, oldStores } from './old-stores.ts'

describe('half a copy of a store', () => {
  for (const bytes of [100, 5_000, 20_000]) {
    it(`of ${bytes} bytes is refused with one line that names it, and stays as it is`, async () => {
      const path = join(newFolder(), 'half.db')
      const half = readFileSync(oldFile).subarray(0, bytes)
      writeFileSync(path, half)
      const { exitCode, stdout, stderr } = await run(['serve', '--port', '0'], {
        folder: newFolder(),
        env: { DATABASE_URL: `sqlite:${path}` },
      })
      assert.equal(stderr, `Cannot open the database ${path}: it is damaged; restore a backup.\n`)
      assert.deepEqual({ exitCode, stdout }, { exitCode: 78, stdout: '' })
      assert.deepEqual(readFileSync(path), half)
    })
  }
})

for (const { name, expected, newUrl } of oldStores) {
  describe(`a store of release 1.0.0 on ${name}`, () => {
    it('holds every plant with its tag and its version after the upgrade', async () => {
      const service = await startService(await newUrl())
      const list = await service.call({ path: '/plants?limit=1000' })
      const wanted = expected.plants
        .toSorted((one, other) => (BigInt(one.id) < BigInt(other.id) ? -1 : 1))
        .map(({ id, name, tag }) => {
          const members = JSON.stringify(tag === undefined ? { name } : { name, tag })
          return `{"id":${id},${members.slice(1)}`
        })
      assert.equal(list.body, `[${wanted.join(',')}]`)
      for (const { id, etag } of expected.plants) {
        const { headers } = await service.call({ path: `/plants/${id}` })
        assert.equal(headers.get('etag'), etag)
      }
      for (const tag of ['indoor', '', 'é & +']) {
        const { body } = await service.call({ path: `/plants?tag=${encodeURIComponent(tag)}` })
        const count = expected.plants.filter((plant) => plant.tag === tag).length
        assert.equal(JSON.parse(body).length, count)
      }
    })

    it('knows every token, with its scopes and its end', async () => {
      const service = await startService(await newUrl())
      const ask = async (token: string, method = 'GET') => {
        const headers = { Authorization: `Bearer ${token}` }
        const { status, body } = await service.call({ method, path: '/plants/0', headers })
        return status < 300 ? status : JSON.parse(body).error
      }
      const { reader, revoked, expired } = expected.tokens
      assert.equal(await ask(reader), 200)
      assert.equal(await ask(reader, 'DELETE'), 40300)
      assert.equal(await ask(revoked), 40101)
      assert.equal(await ask(expired), 40102)
    })

    it('knows the idempotency keys', async () => {
      const { store } = await startService(await newUrl())
      const keyed = expected.plants.find(({ id }) => id === '7919')
      assert.ok(keyed?.tag !== undefined)
      const plant = { id: 7919n, name: keyed.name, tag: keyed.tag }
      const key = { tokenId: 'operator', key: 'key-7919' }
      const other = await store.createPlantOnce({ ...plant, name: 'another' }, key)
      const again = await store.createPlantOnce(plant, key)
      // After a day a service forgets its keys. Then the id is taken, as it is without a key.
      const answers = [other, typeof again === 'object' ? again.isReplay : again]
      assert.ok(['key reused,true', 'exists,exists'].includes(answers.join()), answers.join())
    })

    it('takes writes, keeps a journal from then on, and passes the check', async () => {
      const url = await newUrl()
      const options = { folder: newFolder(), env: { DATABASE_URL: url } }
      const before = await run(['check', '--json'], options)
      const schema = JSON.parse(before.stdout).find(
        (one: { subject: string }) => one.subject === 'schema',
      )
      assert.match(schema.message, /^release 2 of the schema: make a backup/)
      const service = await startService(url)
      assert.equal((await service.create('{"id":5,"name":"new"}')).status, 200)
      assert.equal((await service.create('{"id":0,"name":"taken"}')).status, 409)
      const log = await run(['log'], options)
      assert.match(log.stdout, /^\S+ {2}created {3}5 {2}PLANT_STORE_TOKEN\n$/)
      const after = await run(['check', '--json'], options)
      const found = JSON.parse(after.stdout).filter((one: { state: string }) => one.state !== 'ok')
      // The servers of the tests do without fsync.
      assert.deepEqual(
        found.map((one: { subject: string }) => one.subject),
        name === 'SQLite' ? [] : ['syncs'],
      )
    })

    it('is opened by several processes at once', async () => {
      const url = await newUrl()
      const services = await Promise.all([startService(url), startService(url), startService(url)])
      for (const service of services) {
        const { body } = await service.call({ path: '/plants?limit=1000' })
        assert.equal(body.match(/"id":/g)?.length, expected.plants.length)
      }
    })
  })
}

for (const { name, expected, newUrl } of oldJournals) {
  describe(`the journal of release 1.1.0 on ${name}`, () => {
    const { tokenId, events } = expected

    it('has every change with its position, its plant and its token', async () => {
      const { store } = await startService(await newUrl())
      const found = await readAll(store, 7)
      const toComparable = ({ position, type, plantJson, tokenId }: JournalEvent) => ({
        position,
        type,
        plant: plantJson,
        tokenId,
      })
      assert.deepEqual(
        found.map(toComparable),
        events.map((event) => ({ ...event, tokenId })),
      )
    })

    it('goes on after each of its positions, with the changes of this release', async () => {
      const service = await startService(await newUrl())
      const ids = Array.from({ length: 20 }, (_, index) => 5_000 + index)
      await Promise.all(ids.map((id) => service.create(`{"id":${id},"name":"new"}`)))
      for (const [index, { position }] of events.entries()) {
        const found = await readAll(service.store, 7, position as Position)
        const old = events.slice(index + 1).map(({ plant }) => plant)
        const added = ids.map((id) => `{"id":${id},"name":"new"}`)
        assert.deepEqual(
          found.slice(0, old.length).map((event) => event.plantJson),
          old,
        )
        assert.deepEqual(
          found
            .slice(old.length)
            .map((event) => event.plantJson)
            .sort(),
          added,
        )
      }
    })
  })
}

/** The lines of a log that tell of a migration. */
function findMigrations(log: readonly string[]) {
  const entries = log.map((line) => JSON.parse(line) as { msg: string; durationMs?: number })
  return entries.filter(({ msg }) => msg.startsWith('migrated'))
}

for (const [release, schema, stores] of [
  ['1.0.0', 2, oldStores],
  ['1.1.0', 6, oldJournals],
] as const) {
  for (const { name, newUrl } of stores) {
    it(`an upgrade from ${release} on ${name} leaves one line in the log, if the schema differs`, async () => {
      const current = (name === 'SQLite' ? onSqlite : onPostgres).length
      const isOld = schema < current
      const url = await newUrl()
      const services = await Promise.all([startService(url), startService(url)])
      const lines = findMigrations(services.flatMap(({ log }) => log))
      assert.deepEqual(
        lines.map(({ msg }) => msg),
        isOld ? [`migrated the store from schema ${schema} to schema ${current}`] : [],
      )
      for (const { durationMs = 0 } of lines) assert.ok(durationMs > 0)
      const { log } = await startService(url)
      assert.deepEqual(findMigrations(log), [])
    })
  }
}

it('an upgrade before several workers start leaves one line in the log', async () => {
  const url = (await oldStores.find(({ name }) => name === 'PostgreSQL')?.newUrl()) ?? ''
  const { child, ended, waitFor } = start(['serve', '--port', '0', '--workers', '2'], {
    folder: newFolder(),
    env: { DATABASE_URL: url },
  })
  await waitFor(/address {3}http/)
  child.kill('SIGTERM')
  const { stderr } = await ended
  assert.equal(findMigrations(stderr.trim().split('\n')).length, 1)
})

it('a new store tells of no upgrade', async () => {
  const { log } = await startService(`sqlite:${join(newFolder(), 'new.db')}`)
  assert.deepEqual(findMigrations(log), [])
})
