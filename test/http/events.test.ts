import assert from 'node:assert/strict'
import { once } from 'node:events'
import { before, describe, it } from 'node:test'
import { engines, postgres } from '../support/engines.ts'
import { readEvents } from '../support/event-stream.ts'
import { lowerLimit } from '../support/limits.ts'
import { holdOpen } from '../support/locks.ts'
import { authorized, startService, type TestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'

function create(service: TestService, id: number, name = 'x') {
  return service.create(JSON.stringify({ id, name }))
}

const stream = { Accept: 'text/event-stream', ...authorized }

for (const engine of engines) {
  describe(`a stream of events on ${engine.name}`, () => {
    let url: string
    let service: TestService
    before(async () => {
      url = await engine.newUrl()
      service = await startService(url, { timeouts: { commentMs: 20 } })
    })

    it('tells where it begins, then every change, and continues after any of them', async () => {
      const latest = await readEvents(service.url, '?after=latest')
      assert.equal(latest.response.headers['content-type'], 'text/event-stream')
      await waitUntil(() => latest.begin() !== undefined, 'the stream has begun')
      await create(service, 1, 'line\nend')
      await service.call({ method: 'DELETE', path: '/plants/1' })
      await latest.waitFor(2)
      const types = latest.events.map(({ type }) => type)
      assert.deepEqual(types, ['plant.created', 'plant.deleted'])
      for (const { plant } of latest.events) assert.deepEqual(plant, { id: 1, name: 'line\nend' })
      const [first, second] = latest.events
      const again = await readEvents(service.url, '?after=latest', {
        'Last-Event-ID': latest.begin() as string,
      })
      await again.waitFor(2)
      assert.deepEqual(again.events, latest.events)
      const rest = await readEvents(service.url, `?after=${first?.position}`)
      await rest.waitFor(1)
      assert.deepEqual(rest.events, [second])
      const page = await service.call({ path: `/events?after=${latest.begin()}` })
      assert.deepEqual(JSON.parse(page.body), latest.events)
      assert.match(page.headers.get('link') ?? '', new RegExp(`after=${second?.position}&`))
    })

    it('has the changes of other processes, in the same order', async () => {
      const other = await startService(url)
      const readers = await Promise.all(
        [service, other].map((one) => readEvents(one.url, '?after=latest')),
      )
      for (const reader of readers) await waitUntil(() => reader.begin() !== undefined, 'begun')
      const creates = Array.from({ length: 100 }, (_, index) =>
        create(index % 2 ? service : other, 2_000 + index),
      )
      for (const { status } of await Promise.all(creates)) assert.equal(status, 200)
      for (const reader of readers) await reader.waitFor(100)
      const [one, two] = readers
      assert.deepEqual(one?.events.slice(-100), two?.events.slice(-100))
    })

    it('ends when its token is revoked or expires', async (t) => {
      t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
      const revoked = await service.issue()
      const expiring = await service.issue({ lifetimeMs: 60_000 })
      const [first, second] = await Promise.all(
        [revoked, expiring].map(({ headers }) => readEvents(service.url, '', headers)),
      )
      await service.store.revokeToken(revoked.record.id, Date.now())
      await first?.ended
      t.mock.timers.tick(60_000)
      await second?.ended
    })

    it('ends with its token, whatever is to be sent at the same moment', async () => {
      const { promise: together, resolve: goOn } = Promise.withResolvers<void>()
      const held = new Set<string>()
      const ownUrl = await engine.newUrl()
      const store = await engine.open(ownUrl)
      const own = await startService(ownUrl, {
        store: {
          ...store,
          async findToken(hash) {
            const found = await store.findToken(hash)
            if (found?.revokedAt === undefined) return found
            held.add('token')
            await together
            return found
          },
          async readJournal(...asked) {
            const page = await store.readJournal(...asked)
            if (typeof page === 'string' || page.events.length === 0) return page
            held.add('page')
            await together
            // After the stream has ended, in the same turn of the event loop.
            for (let step = 0; step < 100; step++) await undefined
            return page
          },
        },
      })
      const { headers, record } = await own.issue()
      const reader = await readEvents(own.url, '', headers)
      await waitUntil(() => reader.begin() !== undefined, 'the stream has begun')
      await store.createPlant({ id: 1n, name: 'x' })
      await store.revokeToken(record.id, Date.now())
      await waitUntil(() => held.size === 2, 'both are on their way')
      goOn()
      await reader.ended
      assert.equal((await own.call({ path: '/healthz' })).status, 200)
    })

    for (const [title, stallTimeoutMs] of [
      ['anything', 1_000],
      ['while 1 MiB waits', 60_000],
    ] as const) {
      it(`is cut when its client does not read ${title}`, async () => {
        const own = await startService(await engine.newUrl(), { timeouts: { stallTimeoutMs } })
        const socket = openSocket(own.url)
        socket.write(toBytes({ path: '/events', headers: stream }))
        await once(socket, 'readable')
        const reader = await readEvents(own.url)
        assert.equal(await own.countConnections(), 3)
        const name = 'x'.repeat(1_000_000)
        // The buffers of the system take some of it. A stream that is behind has nothing waiting.
        for (let id = 1; id <= 12; id++) {
          await own.store.createPlant({ id: BigInt(id), name })
          await reader.waitFor(id)
        }
        await waitUntil(async () => (await own.countConnections()) === 2, 'the stream is cut')
        assert.equal(reader.response.destroyed, false)
      })
    }

    it('continues beside bytes that its client sends', async () => {
      const socket = openSocket(service.url)
      socket.write(toBytes({ path: '/events?after=latest', headers: stream }))
      let text = ''
      socket.setEncoding('utf8').on('data', (chunk) => {
        text += chunk
      })
      await waitUntil(() => text.includes('\n\n'), 'the stream has begun')
      socket.write(toBytes({ method: 'DELETE', path: '/plants/4100', headers: authorized }))
      await create(service, 4_100)
      await waitUntil(() => text.includes('"id":4100'), 'the event has come')
      assert.equal((await service.call({ path: '/plants/4100' })).status, 200)
      assert.equal(text.split('HTTP/1.1').length, 2)
    })

    it('ends whole when a shutdown begins, as does one that begins later and is not refused', async () => {
      const own = await startService(await engine.newUrl(), { timeouts: { idleGraceMs: 60_000 } })
      const open = await readEvents(own.url)
      // It keeps the grace from ending at once.
      const client = openSocket(own.url)
      await once(client, 'connect')
      await own.call({ path: '/healthz' })
      const closing = own.close()
      const ending = await readEvents(own.url)
      assert.equal(ending.response.statusCode, 200)
      await Promise.all([ending.ended, open.ended])
      assert.match(ending.begin() ?? '', /./)
      assert.ok(open.response.complete)
      client.destroy()
      await closing
    })

    it('is refused while there are as many as there may be', async (t) => {
      lowerLimit(t, 'eventStreams', 3)
      lowerLimit(t, 'eventStreamsOfToken', 2)
      const own = await startService(await engine.newUrl())
      const [{ headers: one }, { headers: other }] = [await own.issue(), await own.issue()]
      const refusal = async (headers: { Authorization: string }) => {
        const answer = await own.call({ path: '/events', headers: { ...stream, ...headers } })
        const { error, message } = JSON.parse(answer.body)
        return `${error} ${message}`
      }
      const first = await readEvents(own.url, '', one)
      await readEvents(own.url, '', one)
      assert.match(await refusal(one), /^50300 This token has 2/)
      await readEvents(own.url, '', other)
      assert.match(await refusal(authorized), /^50300 The service has 3/)
      first.close()
      await waitUntil(async () => (await own.countConnections()) === 3, 'a stream has ended')
      assert.equal((await readEvents(own.url)).response.statusCode, 200)
    })
  })
}

describe('a position on PostgreSQL beside a transaction that does not end', () => {
  it('is answered with 503 and Retry-After until it can be told', async () => {
    const url = await postgres.newUrl()
    const service = await startService(url)
    const latest = { path: '/events?after=latest' }
    assert.equal((await service.call(latest)).status, 200)
    const slow = await holdOpen(url, "SELECT nextval('plant_store.journal_seq')")
    await create(service, 1)
    const refused = await service.call(latest)
    assert.equal(refused.status, 503)
    assert.equal(JSON.parse(refused.body).error, 50301)
    assert.equal(refused.headers.get('retry-after'), '1')
    await slow.query('ROLLBACK')
    const told = await service.call(latest)
    assert.equal(told.status, 200)
    assert.equal(told.body, '[]')
  })
})
