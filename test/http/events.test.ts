import assert from 'node:assert/strict'
import { once } from 'node:events'
import { before, describe, it } from 'node:test'
import type { JournalEvent } from '../../src/store/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { engines, postgres } from '../support/engines.ts'
import { readEvents } from '../support/event-stream.ts'
import { lowerLimit } from '../support/limits.ts'
import { openClient } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { authorized, startService, type TestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'

function create(service: TestService, id: number, name = 'x') {
  return service.create(JSON.stringify({ id, name }))
}

async function createAll(service: TestService, ids: readonly number[]): Promise<void> {
  for (const { status } of await Promise.all(ids.map((id) => create(service, id)))) {
    assert.equal(status, 200)
  }
}

function range(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index)
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

    it('tells where it begins, then every change, and goes on after any of them', async () => {
      const latest = await readEvents(service.url, '?after=latest')
      assert.equal(latest.response.headers['content-type'], 'text/event-stream')
      await waitUntil(() => latest.begin() !== undefined, 'the stream has begun')
      await create(service, 1, 'line\nend')
      await service.call({ method: 'DELETE', path: '/plants/1' })
      await latest.waitFor(2)
      assert.deepEqual(
        latest.events.map(({ type, plant }) => [type, plant]),
        [
          ['plant.created', { id: 1, name: 'line\nend' }],
          ['plant.deleted', { id: 1, name: 'line\nend' }],
        ],
      )
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

    it('makes the bytes of a change once, however many follow', async () => {
      const ownUrl = await engine.newUrl()
      const store = await engine.open(ownUrl)
      let written = 0
      /** The time of a change is looked at to write it, and for nothing else. */
      const watched = (event: JournalEvent): JournalEvent => ({
        ...event,
        get at() {
          written++
          return event.at
        },
      })
      const own = await startService(ownUrl, {
        store: {
          ...store,
          async readJournal(...asked) {
            const page = await store.readJournal(...asked)
            if (typeof page === 'string') return page
            return { ...page, events: page.events.map(watched) }
          },
        },
      })
      const first = await readEvents(own.url, '?after=latest')
      await waitUntil(() => first.begin() !== undefined, 'the stream has begun')
      const live = await Promise.all(range(1, 20).map(() => readEvents(own.url, '?after=latest')))
      await createAll(own, range(1, 50))
      for (const reader of [first, ...live]) await reader.waitFor(50)
      assert.equal(written, 50)
      const late = await Promise.all(
        range(1, 20).map(() => readEvents(own.url, `?after=${first.begin()}`)),
      )
      for (const reader of late) await reader.waitFor(50)
      assert.ok(written <= 100, `written ${written} times`)
    })

    it('has a comment again and again', async () => {
      const reader = await readEvents(service.url, '?after=latest')
      await waitUntil(() => reader.comments() > 2, 'three comments have come')
    })

    it('is the same for all that come and go, while changes are made', async () => {
      const from = await readEvents(service.url, '?after=latest')
      await waitUntil(() => from.begin() !== undefined, 'the stream has begun')
      const begin = from.begin()
      const readers = [from]
      for (let round = 0; round < 6; round++) {
        const writing = createAll(service, range(1_000 + round * 40, 40))
        readers.push(await readEvents(service.url, `?after=${begin}`))
        const left = readers[readers.length - 2]
        if (round % 2 === 1 && left !== undefined) {
          left.close()
          const last = left.events.at(-1)?.position ?? begin
          const next = await readEvents(service.url, `?after=${last}`)
          readers.push(next)
        }
        await writing
      }
      await from.waitFor(240)
      const positions = from.events.map(({ position }) => position)
      assert.equal(new Set(positions).size, 240)
      assert.deepEqual(
        from.events.map(({ plant }) => plant.id).sort((a, b) => a - b),
        range(1_000, 240),
      )
      for (const reader of readers.filter(({ response }) => !response.destroyed)) {
        const last = positions.at(-1)
        const position = () => reader.events.at(-1)?.position ?? reader.begin()
        await waitUntil(() => position() === last, 'the last event has come')
        const start = positions.indexOf(reader.begin() ?? '') + 1
        assert.deepEqual(reader.events, from.events.slice(start))
      }
    })

    it('has the changes of other processes, in the same order', async () => {
      const other = await startService(url)
      const readers = await Promise.all(
        [service, other].map((one) => readEvents(one.url, '?after=latest')),
      )
      for (const reader of readers) await waitUntil(() => reader.begin() !== undefined, 'begun')
      await Promise.all([createAll(service, range(2_000, 50)), createAll(other, range(2_050, 50))])
      for (const reader of readers) await reader.waitFor(100)
      const [one, two] = readers
      assert.deepEqual(one?.events.slice(-100), two?.events.slice(-100))
    })

    it('ends when its token is revoked or expires', async () => {
      const revoked = await issueToken(service.store, {
        name: 'revoked',
        scopes: ['plants:read'],
        lifetimeMs: undefined,
      })
      const expiring = await issueToken(service.store, {
        name: 'expiring',
        scopes: ['plants:read'],
        lifetimeMs: 1_500,
      })
      const [first, second] = await Promise.all(
        [revoked, expiring].map(({ token }) =>
          readEvents(service.url, '', { Authorization: `Bearer ${token}` }),
        ),
      )
      await service.store.revokeToken(revoked.record.id, Date.now())
      await first?.ended
      await second?.ended
    })

    it('ends with its token, whatever is to be sent at the same moment', async () => {
      const { promise: together, resolve: goOn } = Promise.withResolvers<void>()
      const held = new Set<string>()
      const ownUrl = await engine.newUrl()
      const store = await engine.open(ownUrl)
      const { token, record } = await issueToken(store, {
        name: 'revoked',
        scopes: ['plants:read'],
        lifetimeMs: undefined,
      })
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
      const reader = await readEvents(own.url, '', { Authorization: `Bearer ${token}` })
      await waitUntil(() => reader.begin() !== undefined, 'the stream has begun')
      await store.createPlant({ id: 1n, name: 'x' })
      await store.revokeToken(record.id, Date.now())
      await waitUntil(() => held.size === 2, 'both are on their way')
      goOn()
      await reader.ended
      assert.equal((await own.call({ path: '/healthz' })).status, 200)
    })

    it('ends as soon as the service shuts down, as does each that comes after that', async () => {
      const own = await startService(await engine.newUrl(), { timeouts: { idleGraceMs: 60_000 } })
      // It keeps the port open.
      const silent = openSocket(own.url)
      await waitUntil(async () => (await countConnections(own)) === 2, 'the port is in use')
      const reader = await readEvents(own.url)
      const closing = own.close()
      await reader.ended
      assert.equal(reader.response.complete, true)
      // A 503 would end an EventSource for good.
      const late = await readEvents(own.url)
      await late.ended
      assert.equal(late.response.statusCode, 200)
      assert.equal(late.response.headers['content-type'], 'text/event-stream')
      assert.equal(late.response.complete, true)
      assert.notEqual(late.begin(), undefined)
      assert.equal((await own.call({ path: '/readyz' })).status, 503)
      silent.destroy()
      assert.equal(await closing, 0)
    })

    for (const [title, unreadMs] of [
      ['for 30 s', 300],
      ['while 1 MiB waits', 60_000],
    ] as const) {
      it(`is cut when its client does not read ${title}`, async () => {
        const own = await startService(await engine.newUrl(), { timeouts: { unreadMs } })
        const socket = openSocket(own.url)
        socket.write(toBytes({ path: '/events', headers: stream }))
        await once(socket, 'readable')
        const reader = await readEvents(own.url)
        assert.equal(await countConnections(own), 3)
        const name = 'x'.repeat(1_000_000)
        // The buffers of the system take some of it. A stream that is behind has nothing waiting.
        for (let id = 1; id <= 12; id++) {
          await own.store.createPlant({ id: BigInt(id), name })
          await reader.waitFor(id)
        }
        await waitUntil(async () => (await countConnections(own)) === 2, 'the stream is cut')
        assert.equal(reader.response.destroyed, false)
      })
    }

    it('is a chunk for each piece to a client of HTTP/1.1, and a last one at its end', async () => {
      const own = await startService(await engine.newUrl(), { timeouts: { commentMs: 20 } })
      const socket = openSocket(own.url)
      socket.write(toBytes({ path: '/events?after=latest', headers: stream }))
      let text = ''
      socket.setEncoding('utf8').on('data', (chunk) => {
        text += chunk
      })
      const closed = once(socket, 'close')
      await waitUntil(() => text.includes('retry: 1000\n\n\r\n'), 'the stream has begun')
      for (const id of [1, 2]) {
        await create(own, id, 'Grünlilie')
        // Nothing else comes after it: a client that waits for a next byte would wait in vain.
        await waitUntil(() => text.includes(`"id":${id},"name":"Grünlilie"}}\n\n\r\n`), 'it came')
      }
      await waitUntil(() => text.includes(':\n\n\r\n'), 'a comment has come')
      await own.close()
      await closed
      const headEnd = text.indexOf('\r\n\r\n')
      assert.match(text.slice(0, headEnd), /\r\nTransfer-Encoding: chunked(\r\n|$)/i)
      assert.match(text.slice(0, headEnd), /\r\nX-Accel-Buffering: no(\r\n|$)/i)
      const chunks = toChunks(text.slice(headEnd + 4))
      assert.equal(chunks.pop(), '')
      for (const chunk of chunks) {
        assert.match(chunk, /^(:\n\n|id: [\w-]+\n(retry: 1000|event: .*\ndata: .*)\n\n)$/)
      }
    })

    it('is plain text to a client of HTTP/1.0', async () => {
      const socket = openSocket(service.url)
      const { Authorization, Accept } = stream
      socket.write(
        `GET /events?after=latest HTTP/1.0\r\nAuthorization: ${Authorization}\r\nAccept: ${Accept}\r\n\r\n`,
      )
      let text = ''
      socket.setEncoding('utf8').on('data', (chunk) => {
        text += chunk
      })
      await waitUntil(() => text.includes('\r\n\r\n'), 'the head has come')
      await create(service, 4_000)
      await waitUntil(() => /\ndata: .*4000.*\n\n/.test(text), 'the event has come')
      assert.match(text, /^HTTP\/1.1 200 OK\r\n/)
      assert.doesNotMatch(text, /transfer-encoding/i)
    })

    it('follows the answer before it on its connection, head first', async () => {
      await createAll(service, range(4_200, 100))
      const socket = openSocket(service.url)
      const list = toBytes({ path: '/plants?limit=100', headers: authorized })
      socket.write(Buffer.concat([list, toBytes({ path: '/events', headers: stream })]))
      let text = ''
      socket.setEncoding('utf8').on('data', (chunk) => {
        text += chunk
      })
      await waitUntil(() => /\ndata: .*4299.*\n\n/.test(text), 'the events have come')
      const head = text.lastIndexOf('HTTP/1.1 200 OK\r\n')
      assert.equal(text.slice(head - 1, head), ']')
      const [begin, ...chunks] = toChunks(text.slice(text.indexOf('\r\n\r\n', head) + 4))
      assert.match(begin ?? '', /^id: [\w-]+\nretry: 1000\n\n$/)
      assert.match(chunks.find((chunk) => chunk !== ':\n\n') ?? '', /^id: /)
    })

    it('goes on beside bytes that its client sends', async () => {
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

    it('is cut when its position is gone, and not begun again', async () => {
      const own = await startService(await engine.newUrl())
      // One after the other: the last commit is kept.
      for (const id of range(1, 5)) await create(own, id)
      const { events } = await readAndClose(own)
      while (!(await own.store.trimJournal(Date.now() + 60_000)));
      const answer = await own.call({
        path: `/events?after=${events[0]?.position}`,
        headers: stream,
      })
      assert.equal(answer.status, 410)
      assert.equal(JSON.parse(answer.body).error, 41000)
    })

    it('is refused after a position from before the journal was off', async () => {
      const own = await engine.newUrl()
      const positions: string[] = []
      for (const [id, JOURNAL_KEEP] of ['1h', 'off', '1h'].entries()) {
        const one = await startService(own, { env: { JOURNAL_KEEP } })
        await create(one, id)
        for (const position of positions) {
          const path = `/events?after=${position}`
          for (const headers of [authorized, stream]) {
            const { status, body } = await one.call({ path, headers })
            assert.equal(status, JOURNAL_KEEP === 'off' ? 404 : 410)
            assert.equal(JSON.parse(body).error, JOURNAL_KEEP === 'off' ? 40400 : 41000)
          }
        }
        const { body } = await one.call({ path: '/events' })
        if (id === 0) positions.push(JSON.parse(body)[0].position)
        if (id === 2) assert.equal(JSON.parse(body)[0].plant.id, 2)
        await one.close()
      }
    })

    it('is refused while there are as many as there may be', async (t) => {
      lowerLimit(t, 'eventStreams', 3)
      lowerLimit(t, 'eventStreamsOfToken', 2)
      const own = await startService(await engine.newUrl())
      const newToken = async () => {
        const scopes = ['plants:read'] as const
        const { token } = await issueToken(own.store, { name: 'x', scopes, lifetimeMs: undefined })
        return { Authorization: `Bearer ${token}` }
      }
      const [one, other] = [await newToken(), await newToken()]
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
      await waitUntil(async () => (await countConnections(own)) === 3, 'a stream has ended')
      assert.equal((await readEvents(own.url)).response.statusCode, 200)
    })
  })
}

/** The content of the chunks that a text consists of, the last of which may have broken off. */
function toChunks(text: string): string[] {
  const chunks: string[] = []
  let rest = Buffer.from(text)
  for (;;) {
    const [head, size] = /^([0-9a-f]+)\r\n/.exec(rest.toString('latin1', 0, 16)) ?? []
    if (head === undefined || size === undefined) break
    const end = head.length + Number.parseInt(size, 16)
    if (rest.length < end + 2) break
    assert.equal(rest.toString('latin1', end, end + 2), '\r\n')
    chunks.push(rest.toString('utf8', head.length, end))
    rest = rest.subarray(end + 2)
  }
  return chunks
}

async function readAndClose(service: TestService) {
  const reader = await readEvents(service.url)
  await reader.waitFor(5)
  reader.close()
  return reader
}

/** The connections of a service, with that of the question. */
async function countConnections(service: TestService): Promise<number> {
  const { body } = await service.call({ path: '/metrics' })
  return Number(/^plant_store_http_connections (\d+)$/m.exec(body)?.[1])
}

describe('a position on PostgreSQL beside a transaction that does not end', () => {
  it('is answered with 503 and Retry-After until it can be told', async () => {
    const url = await postgres.newUrl()
    const service = await startService(url)
    const latest = { method: 'GET', path: '/events?after=latest' }
    assert.equal((await service.call(latest)).status, 200)
    const slow = await openClient(url)
    releaseAfterTest(() => slow.end())
    await slow.query("BEGIN; SELECT nextval('plant_store.journal_seq')")
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
