import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openStore, toStoreLocation } from '../../src/store/open.ts'
import { ends } from '../cli/ends.ts'
import { newFolder } from '../support/folder.ts'
import { authorized, startService } from '../support/service.ts'
import { closeAfterTest } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver, verify } from '../webhooks/test-receiver.ts'
import { start } from '../webhooks/test-sender.ts'
import {
  assertHoldsAll,
  assertInOrder,
  copies12,
  digest,
  execute,
  listAll,
  stores12,
} from './old-stores.ts'

/** The larger of the two plants that a body could not carry today. */
const largestId = '1048576'

const openOld = async (url: string) =>
  closeAfterTest(await openStore(toStoreLocation(url) ?? assert.fail()))

for (const { name, expected, newUrl } of stores12) {
  describe(`a store of release 1.2.0 on ${name}`, () => {
    it('reads, lists, finds, exports, sends and deletes plants beyond the size of a body', async () => {
      const url = await newUrl()
      const service = await startService(url)
      const large = expected.plants.filter(({ json }) => json.length > 50_000)
      assert.equal(large.length, 2)
      const jsons = large.map(({ json }) => digest(json))
      assert.deepEqual((await listAll(service, '&tag=large')).map(digest), jsons)
      // "Large éééé…" and "jjjj…".
      const found = await Promise.all(
        ['Large%20%C3%89', 'JJJJJJ'].map((text) => listAll(service, `&name=${text}`)),
      )
      assert.deepEqual(found.flat().map(digest), jsons)
      const download = async (path: string) =>
        (await (await fetch(service.url + path, { headers: authorized })).text()).trim()
      const lines = (await download('/plants.ndjson?tag=large')).split('\n')
      assert.deepEqual(lines.map(digest), jsons)
      const csv = (await download('/plants.csv?tag=large')).split(/\r?\n/)
      const rows = large.map(({ id, json }) => digest(`${id},${JSON.parse(json).name},large`))
      assert.deepEqual(csv.slice(1).map(digest), rows)
      const receiver = await openTestReceiver()
      const add = `webhook add ${receiver.url} --types plant.deleted --database ${url}`
      await ends(add, 0, /^/, newFolder())
      const before = (await service.call({ path: '/events?after=latest' })).headers.get('link')
      for (const { id } of large) {
        assert.equal((await service.call({ method: 'DELETE', path: `/plants/${id}` })).status, 204)
      }
      for (let link = before, index = 0; index < large.length; index++) {
        // Each of them fills a page.
        const page = await service.call({ path: /<([^>]+)>/.exec(link ?? '')?.[1] ?? '' })
        assert.ok(page.body.includes(`"plant":${large[index]?.json}`), `the event ${index}`)
        link = page.headers.get('link')
      }
      await receiver.waitFor(2)
      assert.deepEqual(receiver.received.map(({ body }) => digest(body)).sort(), jsons.toSorted())
      assert.equal((await service.call({ path: `/plants/${largestId}` })).status, 404)
    })

    it('keeps its receivers, and sends what waits for them once, signed and in order', async () => {
      const receiver = await openTestReceiver()
      const url = await newUrl()
      const [active, paused] = expected.receivers
      assert.ok(active?.state === 'active' && paused?.state === 'paused')
      await execute(url, (schema) => `UPDATE ${schema}receivers SET url = '${receiver.url}'`)
      const store = await openOld(url)
      const kept = await store.receivers.list()
      const found = kept.map(({ id, state, progress }) => [id, state, progress.position])
      const known = [active, paused].map(({ id, state, position }) => [id, state, position])
      assert.deepEqual(found, known)
      // It was added after the journal had been filled, so it waits for all but these.
      const first = expected.events.findIndex(({ plant }) => plant.includes('the first'))
      const wanted = expected.events.slice(first)
      start(store)
      await receiver.waitFor(wanted.length)
      await receiver.answerOther()
      assert.equal(receiver.received.length, wanted.length)
      assert.deepEqual(receiver.together, [])
      const bodies = new Map(receiver.received.map((one) => [one.id, one]))
      for (const { position, plant, type } of wanted) {
        const received = bodies.get(position) ?? assert.fail(position)
        assert.deepEqual([received.event, digest(received.body)], [type, digest(plant)])
        verify(received, expected.secrets.active)
      }
      const ids = Map.groupBy(receiver.received, ({ plantId }) => plantId)
      const order = wanted.map(({ position }) => position)
      for (const changes of ids.values()) {
        const places = changes.map(({ id }) => order.indexOf(id))
        const inOrder = places.toSorted((one, other) => one - other)
        assert.deepEqual(places, inOrder)
      }
      await waitUntil(
        async () => (await store.receivers.listDeliveries(active.id, 'waiting')).length === 0,
        'all are saved as delivered',
      )
    })

    it('is copied and backed up whole, with its large plants', async () => {
      const url = await newUrl()
      const folder = newFolder()
      const [copy, restored] = [`sqlite:${folder}/copy.db`, `sqlite:${folder}/restored.db`]
      await ends(`copy --from ${url} --to ${copy}`, 0, /^/, folder)
      await assertHoldsAll(await startService(copy), expected)
      if (name !== 'SQLite') return
      await ends(`backup backup.db --database ${url}`, 0, /^/, folder)
      await ends(`restore backup.db --database ${restored}`, 0, /^/, folder)
      await assertHoldsAll(await startService(restored), expected)
    })
  })
}

for (const { name, expected, newUrl } of copies12) {
  it(`a copy that follow of release 1.2.0 made on ${name} is an ordinary store`, async () => {
    const url = await newUrl()
    const service = await startService(url)
    await assertHoldsAll(service, expected)
    assert.equal((await service.create('{"id":6000,"name":"new"}')).status, 200)
    assert.equal((await service.call({ method: 'DELETE', path: '/plants/1000' })).status, 204)
    await assertInOrder(url)
  })
}
