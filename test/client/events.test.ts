import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { followEvents, readBlocks } from '../../client/events.ts'
import {
  type PlantEvent,
  PlantStore,
  type PlantStoreError,
  PositionGoneError,
} from '../../client/index.ts'
import { toLink } from '../../client/request.ts'
import { startService, operatorToken as token } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { openDroppingProxy } from './dropping-proxy.ts'
import { answer, countTimers, openScriptedServer, type Script } from './scripted-server.ts'

const large = 2n ** 62n + 1n

/** Reads this many events and closes the stream. */
async function take(events: AsyncIterable<PlantEvent>, count: number): Promise<PlantEvent[]> {
  const taken: PlantEvent[] = []
  for await (const event of events) if (taken.push(event) === count) break
  return taken
}

const service = await startService('sqlite::memory:')
const store = new PlantStore({ url: service.url, token })

describe('events', () => {
  it('come in order, with every digit, from the oldest, after a position and from now on', async () => {
    await store.create({ id: large, name: 'a' })
    await store.replace(large, { name: 'b', tag: 't' })
    await store.delete(large)
    const all = await take(store.events(), 3)
    assert.deepEqual(
      all.map(({ type, plant }) => ({ type, plant })),
      [
        { type: 'plant.created', plant: { id: large, name: 'a' } },
        { type: 'plant.replaced', plant: { id: large, name: 'b', tag: 't' } },
        { type: 'plant.deleted', plant: { id: large, name: 'b', tag: 't' } },
      ],
    )
    for (const { at } of all) assert.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const [, second] = all
    assert.deepEqual(await take(store.events({ after: all[0]?.position }), 1), [second])
    const now = store.events({ after: await store.position() })
    await store.create({ id: large, name: 'c' })
    assert.deepEqual((await now.next()).value?.plant, { id: large, name: 'c' })
    await now.return?.()
  })

  it('continue through cut connections, without a gap and without one twice', async () => {
    const seen: string[] = []
    const before = await store.position()
    let bytesLeft = 2_000
    const proxy = await openDroppingProxy(
      service.url,
      () => undefined,
      (bytes) => {
        bytesLeft -= bytes.length
        if (bytesLeft > 0) return bytes
        const cut = bytes.subarray(0, bytes.length + bytesLeft)
        bytesLeft = 2_000
        return cut
      },
    )
    const behind = new PlantStore({ url: proxy.url, token })
    const names = Array.from({ length: 60 }, (_, index) => `cut ${index}`)
    const writing = (async () => {
      for (const [index, name] of names.entries()) {
        await store.create({ id: -BigInt(index) - 1n, name })
      }
    })()
    for await (const { plant } of behind.events({ after: before })) {
      seen.push(plant.name)
      if (plant.name === names.at(-1)) break
    }
    await writing
    assert.deepEqual(seen, names)
    assert.ok(proxy.requests.length > 3, `${proxy.requests.length} connections`)
  })

  it('tell a position that the store does not have from one that is none', async () => {
    const other = new PlantStore({ url: (await startService('sqlite::memory:')).url, token })
    await other.create({ id: 1n, name: 'x' })
    const [event] = await take(other.events(), 1)
    const error = await store
      .events({ after: event?.position })
      .next()
      .catch((caught: unknown) => caught)
    assert.ok(error instanceof PositionGoneError)
    assert.deepEqual([error.status, error.error, error.name], [410, 41000, 'PositionGoneError'])
    await assert.rejects(store.events({ after: 'no position!' }).next(), { error: 40005 })
  })
})

const head: Script = (_request, response) => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('id: p0\n\n')
}
function toBlock(position: string): string {
  const plant = { id: 1, name: position }
  const event = { position, type: 'plant.created', at: '2026-01-01T00:00:00.000Z', plant }
  return `id: ${position}\nevent: plant.created\ndata: ${JSON.stringify(event)}\n\n`
}
function stream(text: string): Script {
  return (_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end(text)
  }
}

describe('a stream of events', () => {
  it('is asked for again after the last position, even before the first event', async () => {
    const { url, requests } = await openScriptedServer(
      stream('id: p0\n\n'),
      (_request, response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' })
        response.write(':\n\n', () => response.destroy())
      },
      stream(`${toBlock('p1')}id: p2\nevent: plant.created\ndata: {"posit`),
      stream(`${toBlock('p1')}${toBlock('p2')}`),
    )
    const client = new PlantStore({ url, token })
    const timers = countTimers()
    const events = await take(client.events({ after: 'latest' }), 2)
    assert.equal(countTimers(), timers)
    const positions = events.map(({ position }) => position)
    assert.deepEqual(positions, ['p1', 'p2'])
    const asked = requests.map((request) => request.url)
    assert.deepEqual(asked, [
      '/events?after=latest',
      '/events?after=p0',
      '/events?after=p0',
      '/events?after=p1',
    ])
    assert.equal(requests[0]?.headers.accept, 'text/event-stream')
  })

  it('that ends at once each time is asked for after ever longer pauses', async (t) => {
    t.mock.method(Math, 'random', () => 0.01)
    const { url } = await openScriptedServer(stream('id: p0\n\n'))
    const left = new AbortController()
    const pauses: number[] = []
    const onRetry = (_: PlantStoreError, pauseMs: number) => {
      if (pauses.push(pauseMs) === 4) left.abort('enough')
    }
    const events = new PlantStore({ url, token, onRetry }).events({ signal: left.signal })
    await assert.rejects(events.next(), (reason) => reason === 'enough')
    assert.deepEqual(pauses, [2.5, 5, 10, 20])
  })

  it('that is silent for too long is opened again', async () => {
    const { url, requests } = await openScriptedServer(head, stream(toBlock('p1')))
    const link = { ...toLink({ url, token }), silenceMs: 50 }
    const [event] = await take(followEvents(link, {}), 1)
    assert.equal(event?.position, 'p1')
    assert.equal(requests[1]?.url, '/events?after=p0')
    await waitUntil(() => requests[0]?.socket.destroyed === true, 'the silent one is closed')
  })

  for (const [title, script] of [
    ['with data that is no event', stream('id: p1\ndata: {}\n\n')],
    ['with data that is no JSON', stream('id: p1\ndata: {\n\n')],
    ['of another media type', answer(200, '[]', { 'Content-Type': 'application/json' })],
    ['of a service without a journal', answer(404, { error: 40400, message: 'Off.' })],
  ] as [string, Script][]) {
    it(`${title} is a PlantStoreError, and not asked for again`, async () => {
      const { url, requests } = await openScriptedServer(script)
      const events = new PlantStore({ url, token }).events()
      await assert.rejects(events.next(), { name: 'PlantStoreError' })
      assert.equal(requests.length, 1)
    })
  }

  it('that never opens is given up after as many retries as the options allow', async () => {
    const { url, requests } = await openScriptedServer((request) => request.socket.destroy())
    const events = new PlantStore({ url, token, retries: 2 }).events()
    await assert.rejects(events.next(), { name: 'PlantStoreError' })
    assert.equal(requests.length, 3)
  })

  for (const [name, scripts, follow] of [
    ['events', [stream(toBlock('p1'))], (client, signal) => client.events({ signal })],
    [
      'mirror',
      [answer(200, '[]', { Link: '</events?after=p0>; rel="next"' })],
      (client, signal) => client.mirror({ signal }),
    ],
  ] as [string, Script[], (client: PlantStore, signal: AbortSignal) => AsyncIterator<unknown>][]) {
    it(`of ${name} is asked for again after a minute, however long the service refuses it`, async () => {
      const refusal = { error: 42900, message: 'Too many requests.' }
      const refuse = answer(429, refusal, { 'Retry-After': '3600' })
      const { url } = await openScriptedServer(...scripts, refuse)
      const controller = new AbortController()
      const onRetry = ({ status }: PlantStoreError, pauseMs: number) => {
        if (status === 429) controller.abort(pauseMs)
      }
      const items = follow(new PlantStore({ url, token, onRetry }), controller.signal)
      await items.next()
      await assert.rejects(items.next(), (reason) => reason === 60_000)
    })
  }

  it('is closed with break, and leaves no timer', async () => {
    const { url, sockets } = await openScriptedServer((request, response) => {
      head(request, response)
      response.write(toBlock('p1'))
    })
    const before = countTimers()
    await take(new PlantStore({ url, token }).events(), 1)
    await waitUntil(() => sockets.size === 0, 'no connection left')
    assert.equal(countTimers(), before)
  })

  it('is read alike wherever its bytes are split', async () => {
    const link = toLink({ url: 'http://127.0.0.1', token })
    const text = `retry: 1000\nid: p0\n\n:\n\nid: p1\nevent: x\ndata: {"name":"\u{1f33f}ä"}\n\nid: p2`
    const bytes = new TextEncoder().encode(text)
    const expected = [
      { id: 'p0', data: '' },
      { id: '', data: '' },
      { id: 'p1', data: ' {"name":"\u{1f33f}ä"}' },
    ]
    for (let first = 0; first < bytes.length; first++) {
      const parts = [
        bytes.subarray(0, first),
        bytes.subarray(first, first + 1),
        bytes.subarray(first + 1),
      ]
      const blocks = readBlocks(link, ReadableStream.from(parts), new AbortController())
      assert.deepEqual((await Array.fromAsync(blocks)).flat(), expected)
    }
  })
})
