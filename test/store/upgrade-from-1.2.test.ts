import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { openStore, toStoreLocation } from '../../src/store/open.ts'
import type { Position } from '../../src/store/store.ts'
import { run } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { query } from '../support/postgres.ts'
import { authorized, json, startService, type TestService } from '../support/service.ts'
import { closeAfterTest } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver, verify } from '../webhooks/test-receiver.ts'
import { start } from '../webhooks/test-sender.ts'
import { readAll } from './journal-pages.ts'
import { copies12, type Release12, stores12 } from './old-stores.ts'

/** The larger of the two plants that a body could not carry today. */
const largestId = '1048576'

const openOld = async (url: string) =>
  closeAfterTest(await openStore(toStoreLocation(url) ?? assert.fail()))

/** Compares texts of a megabyte without printing them. */
const digest = (text: string) => createHash('sha256').update(text).digest('hex')

/** Every plant, by following `Link`. */
async function listAll(service: TestService, query = ''): Promise<string[]> {
  const found: string[] = []
  for (let path: string | undefined = `/plants?limit=1000${query}`; path !== undefined; ) {
    const { status, body, headers } = await service.call({ path })
    assert.equal(status, 200)
    found.push(...body.slice(1, -1).split(/(?<=\}),(?=\{"id":)/))
    path = /<([^>]+)>/.exec(headers.get('link') ?? '')?.[1]
  }
  return found.filter((text) => text !== '')
}

async function assertHoldsAll(service: TestService, { plants }: Release12): Promise<void> {
  const listed = await listAll(service)
  assert.deepEqual(
    listed.map(digest),
    plants.map(({ json }) => digest(json)),
  )
}

async function execute(url: string, toStatement: (schema: string) => string): Promise<void> {
  if (!url.startsWith('sqlite:')) {
    await query(url, toStatement('plant_store.'))
    return
  }
  using db = new DatabaseSync(url.replace('sqlite:', ''))
  db.exec(toStatement(''))
}

for (const { name, expected, newUrl } of stores12) {
  describe(`a store of release 1.2.0 on ${name}`, () => {
    it('holds every plant with its version, and every token', async () => {
      const service = await startService(await newUrl())
      await assertHoldsAll(service, expected)
      for (const { id, etag, json } of expected.plants) {
        const { headers, body } = await service.call({ path: `/plants/${id}` })
        assert.deepEqual([headers.get('etag'), digest(body)], [etag, digest(json)])
      }
      const ask = async (token: string, method: string) => {
        const headers = { Authorization: `Bearer ${token}` }
        const { status, body } = await service.call({ method, path: '/plants/1000', headers })
        return status < 300 ? status : JSON.parse(body).error
      }
      const { reader, writer, revoked, expired } = expected.tokens
      assert.deepEqual(
        [
          await ask(reader, 'GET'),
          await ask(reader, 'DELETE'),
          await ask(writer, 'DELETE'),
          await ask(revoked, 'GET'),
          await ask(expired, 'GET'),
        ],
        [200, 40300, 204, 40101, 40102],
      )
    })

    it('goes on after each position of its journal, and has every change', async () => {
      const store = await openOld(await newUrl())
      assert.equal(await store.journalEnd(), expected.end)
      const wanted = expected.events.map(({ position, type, plant }) => [
        position,
        type,
        digest(plant),
      ])
      for (let index = 0; index < wanted.length; index += 30) {
        const after = index === 0 ? 'oldest' : (expected.events[index - 1]?.position as Position)
        const found = await readAll(store, 40, after)
        assert.deepEqual(
          found.map(({ position, type, plantJson }) => [position, type, digest(plantJson)]),
          wanted.slice(index),
        )
      }
    })

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
      assert.deepEqual(
        csv.slice(1).map(digest),
        large.map(({ id, json }) => digest(`${id},${JSON.parse(json).name},large`)),
      )
      const receiver = await openTestReceiver()
      const added = await run(['webhook', 'add', receiver.url, '--types', 'plant.deleted'], {
        folder: newFolder(),
        env: { DATABASE_URL: url },
      })
      assert.equal(added.exitCode, 0, added.stderr)
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

    it('refuses to write plants beyond the size of a body again, and keeps them', async () => {
      const service = await startService(await newUrl())
      const large = expected.plants.filter(({ json }) => json.length > 50_000)
      const download = async (path: string) =>
        await (await fetch(service.url + path, { headers: authorized })).text()
      for (const { id, json: body } of large) {
        const put = { method: 'PUT', path: `/plants/${id}`, headers: json, body }
        assert.equal(JSON.parse((await service.call(put)).body).error, 41300)
      }
      for (const [path, mediaType, firstLine] of [
        ['/plants.ndjson', 'application/x-ndjson', 1],
        ['/plants.csv', 'text/csv', 2],
      ] as const) {
        const { status, body } = await service.call({
          method: 'POST',
          path: `${path}?on-conflict=replace`,
          headers: { 'Content-Type': mediaType },
          body: await download(`${path}?tag=large`),
        })
        const { refused, ...counts } = JSON.parse(body)
        assert.deepEqual([status, counts.invalid, counts.refusedInAll], [200, 2, 2])
        assert.deepEqual(
          refused.map((one: { line: number; error: number }) => [one.line, one.error]),
          [
            [firstLine, 41300],
            [firstLine + 1, 41300],
          ],
        )
      }
      for (const { id, etag, json } of large) {
        const { headers, body } = await service.call({ path: `/plants/${id}` })
        assert.deepEqual([headers.get('etag'), digest(body)], [etag, digest(json)])
      }
    })

    it('keeps its receivers, and sends what waits for them once, signed and in order', async () => {
      const receiver = await openTestReceiver()
      const url = await newUrl()
      const [active, paused] = expected.receivers
      assert.ok(active?.state === 'active' && paused?.state === 'paused')
      await execute(url, (schema) => `UPDATE ${schema}receivers SET url = '${receiver.url}'`)
      const store = await openOld(url)
      assert.deepEqual(
        (await store.receivers.list()).map(({ id, state, progress }) => [
          id,
          state,
          progress.position,
        ]),
        [active, paused].map(({ id, state, position }) => [id, state, position]),
      )
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
        assert.deepEqual(
          places,
          places.toSorted((one, other) => one - other),
        )
      }
      await waitUntil(
        async () => (await store.receivers.listDeliveries(active.id, 'waiting')).length === 0,
        'all are saved as delivered',
      )
    })

    it('is copied and backed up whole, with its large plants', async () => {
      const url = await newUrl()
      const folder = newFolder()
      const options = { folder, env: { DATABASE_URL: url } }
      const copied = await run(['copy', '--from', url, '--to', `sqlite:${folder}/copy.db`], options)
      assert.equal(copied.exitCode, 0, copied.stderr)
      await assertHoldsAll(await startService(`sqlite:${folder}/copy.db`), expected)
      if (name !== 'SQLite') return
      const saved = await run(['backup', `${folder}/backup.db`], options)
      assert.equal(saved.exitCode, 0, saved.stderr)
      const restored = await run(['restore', `${folder}/backup.db`], {
        folder,
        env: { DATABASE_URL: `sqlite:${folder}/restored.db` },
      })
      assert.equal(restored.exitCode, 0, restored.stderr)
      await assertHoldsAll(await startService(`sqlite:${folder}/restored.db`), expected)
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
    const { stdout } = await run(['check', '--json'], {
      folder: newFolder(),
      env: { DATABASE_URL: url },
    })
    const found = JSON.parse(stdout).filter((one: { state: string }) => one.state !== 'ok')
    // The servers of the tests do without fsync.
    assert.deepEqual(
      found.map((one: { subject: string }) => one.subject),
      name === 'SQLite' ? [] : ['syncs'],
    )
  })
}
