import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { JournalEvent, Position } from '../../src/store/store.ts'
import { schemaVersion } from '../../src/store/tables.ts'
import { ends } from '../cli/ends.ts'
import { newFolder } from '../support/folder.ts'
import { startService } from '../support/service.ts'
import { readAll } from './journal-pages.ts'
import {
  assertHoldsAll,
  assertInOrder,
  digest,
  listAll,
  oldJournals,
  oldStores,
  stores12,
} from './old-stores.ts'

for (const [release, stores] of Object.entries({ '1.0.0': oldStores, '1.2.0': stores12 })) {
  for (const { name, expected, newUrl } of stores) {
    it(`a store of release ${release} on ${name} holds every plant and token`, async () => {
      const service = await startService(await newUrl())
      await assertHoldsAll(service, expected)
      for (const { id, etag, json } of expected.plants) {
        const { headers, body } = await service.call({ path: `/plants/${id}` })
        assert.deepEqual([headers.get('etag'), digest(body)], [etag, digest(json)])
      }
      const jsons = expected.plants.map(({ json }) => json)
      for (const tag of ['indoor', '', 'é & +']) {
        const wanted = jsons.filter((json) => JSON.parse(json).tag === tag)
        assert.deepEqual(await listAll(service, `&tag=${encodeURIComponent(tag)}`), wanted)
      }
      const ask = async (token: string, method = 'GET') => {
        const headers = { Authorization: `Bearer ${token}` }
        const { status, body } = await service.call({ method, path: '/plants/0', headers })
        return status < 300 ? status : JSON.parse(body).error
      }
      const { reader, revoked, expired, ...others } = expected.tokens
      assert.equal(await ask(reader), 200)
      assert.equal(await ask(reader, 'DELETE'), 40300)
      assert.equal(await ask(revoked), 40101)
      assert.equal(await ask(expired), 40102)
      for (const writer of Object.values<string>(others))
        assert.equal(await ask(writer, 'DELETE'), 204)
    })
  }
}

for (const { name, expected, newUrl } of oldStores) {
  describe(`a store of release 1.0.0 on ${name}`, () => {
    it('knows the idempotency keys', async () => {
      const { store } = await startService(await newUrl())
      const keyed = expected.plants.find(({ id }) => id === '7919')
      const { name, tag } = JSON.parse(keyed?.json ?? '')
      assert.ok(tag !== undefined)
      const plant = { id: 7919n, name, tag }
      const key = { tokenId: 'operator', key: 'key-7919' }
      const other = await store.createPlantOnce({ ...plant, name: 'another' }, key)
      const again = await store.createPlantOnce(plant, key)
      // After a day a service forgets its keys. Then the id is taken, as it is without a key.
      const answers = [other, typeof again === 'object' ? again.isReplay : again]
      assert.ok(['key reused,true', 'exists,exists'].includes(answers.join()), answers.join())
    })

    it('takes writes, keeps a journal from then on, and passes the check', async () => {
      const url = await newUrl()
      const folder = newFolder()
      const checked = await ends(`check --json --database ${url}`, 1, /^/, folder)
      const schema = JSON.parse(checked).find(
        (one: { subject: string }) => one.subject === 'schema',
      )
      assert.match(schema.message, /^release 2 of the schema: make a backup/)
      const service = await startService(url)
      assert.equal((await service.create('{"id":5,"name":"new"}')).status, 200)
      assert.equal((await service.create('{"id":0,"name":"taken"}')).status, 409)
      const log = await ends(`log --database ${url}`, 0, '', folder)
      assert.match(log, /^\S+ {2}created {3}5 {2}PLANT_STORE_TOKEN\n$/)
      await assertInOrder(url)
    })
  })
}

for (const [release, stores, step] of [
  ['1.1.0', oldJournals, 1],
  ['1.2.0', stores12, 30],
] as const) {
  for (const { name, expected, newUrl } of stores) {
    it(`the journal of release ${release} on ${name} continues after each position`, async () => {
      const { store, create } = await startService(await newUrl())
      const { tokenId, events } = expected
      const toComparable = ({ position, type, plantJson, tokenId: madeBy }: JournalEvent) => [
        ...[position, type, digest(plantJson)],
        ...(tokenId === undefined ? [] : [madeBy]),
      ]
      const wanted = events.map(({ position, type, plant }) => [
        ...[position, type, digest(plant)],
        ...(tokenId === undefined ? [] : [tokenId]),
      ])
      assert.equal(await store.journalEnd(), events.at(-1)?.position)
      assert.equal((await create('{"id":6000,"name":"new"}')).status, 200)
      for (let index = 0; index < wanted.length; index += step) {
        const after = index === 0 ? 'oldest' : (events[index - 1]?.position as Position)
        const found = await readAll(store, 7 * step, after)
        assert.equal(found.pop()?.plantJson, '{"id":6000,"name":"new"}')
        assert.deepEqual(found.map(toComparable), wanted.slice(index))
      }
    })
  }
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
      const isOld = schema < schemaVersion
      const url = await newUrl()
      const services = await Promise.all([startService(url), startService(url)])
      const lines = findMigrations(services.flatMap(({ log }) => log))
      const told = `migrated the store from schema ${schema} to schema ${schemaVersion}`
      const messages = lines.map(({ msg }) => msg)
      assert.deepEqual(messages, isOld ? [told] : [])
      for (const { durationMs = 0 } of lines) assert.ok(durationMs > 0)
      const { log } = await startService(url)
      assert.deepEqual(findMigrations(log), [])
    })
  }
}

it('a new store tells of no upgrade', async () => {
  const { log } = await startService(`sqlite:${join(newFolder(), 'new.db')}`)
  assert.deepEqual(findMigrations(log), [])
})
