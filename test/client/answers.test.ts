import assert from 'node:assert/strict'
import { after, before, describe, it, mock } from 'node:test'
import { gzipSync } from 'node:zlib'
import { emptyReport } from '../../client/import-parts.ts'
import { PlantStore, PlantStoreError, type PlantStoreOptions } from '../../client/index.ts'
import { waitUntil } from '../support/wait.ts'
import { answer, openScriptedServer, type Script } from './scripted-server.ts'

const plant = answer(200, { id: 1, name: 'Ficus' }, { ETag: '"1"' })
const state = { id: 1n, name: 'Ficus', etag: '"1"' }
const overloaded = { error: 50300, message: 'Overloaded.' }
const ignore: Script = () => {}
const hangUp: Script = (request) => request.socket.destroy()
const cutShort: Script = (_request, response) => {
  response.writeHead(200, { 'Content-Length': 100, 'X-Request-Id': 'r1' })
  response.write('{"id":1,', () => response.destroy())
}

async function open(scripts: Script[], options: Partial<PlantStoreOptions> = {}) {
  const server = await openScriptedServer(...scripts)
  const store = new PlantStore({ url: server.url, token: 'secret-token', ...options })
  return { server, store }
}

async function catchError(promise: Promise<unknown>): Promise<PlantStoreError> {
  const error = await promise.catch((caught: unknown) => caught)
  assert.ok(error instanceof PlantStoreError, String(error))
  return error
}

describe('answers that the client retries', () => {
  // Each pause is a random part of what it may be.
  before(() => mock.method(Math, 'random', () => 0.01))
  after(() => mock.restoreAll())

  const retried: [title: string, script: Script][] = [
    ['503 with Retry-After', answer(503, overloaded, { 'Retry-After': '0' })],
    ['503 without Retry-After', answer(503, overloaded)],
    ['429 with Retry-After', answer(429, { error: 42900, message: 'x' }, { 'Retry-After': '0' })],
    ['504', answer(504, { error: 50400, message: 'Not confirmed.' })],
    ['502 of a proxy', answer(502, '<h1>Bad Gateway</h1>')],
    ['a lost connection', hangUp],
    ['an answer cut short', cutShort],
  ]
  for (const [title, script] of retried) {
    it(`tries again after ${title}`, async () => {
      const { store, server } = await open([script, script, plant])
      assert.deepEqual(await store.get(1n), state)
      assert.equal(server.requests.length, 3)
    })
  }

  it('tries 5 times more unless told otherwise, then throws the last failure', async () => {
    const headers = { 'Retry-After': '0', 'X-Request-Id': 'last' }
    const { store, server } = await open([answer(503, overloaded, headers)])
    const { status, error, message, requestId } = await catchError(store.get(1n))
    assert.deepEqual(
      { status, error, message, requestId },
      { status: 503, ...overloaded, requestId: 'last' },
    )
    assert.equal(server.requests.length, 6)
  })

  it('never tries again with retries: 0', async () => {
    const { store, server } = await open([hangUp], { retries: 0 })
    await catchError(store.get(1n))
    assert.equal(server.requests.length, 1)
  })

  for (const [title, toValue] of [
    ['seconds', () => '20'],
    ['a date', () => new Date(Date.now() + 20_000).toUTCString()],
  ] as const) {
    it(`waits as long as Retry-After says in ${title}`, async () => {
      const refuse: Script = (request, response) =>
        answer(503, overloaded, { 'Retry-After': toValue() })(request, response)
      const stop = new AbortController()
      const { store } = await open([refuse], { onRetry: (_, pauseMs) => stop.abort(pauseMs) })
      // A busy machine takes its time to read the date.
      const isLong = (pauseMs: unknown) => Number(pauseMs) > 10_000
      await assert.rejects(store.get(1n, { signal: stop.signal }), isLong)
    })
  }

  it('does not wait for longer than a minute: it throws at once', async () => {
    const { store, server } = await open([answer(429, overloaded, { 'Retry-After': '61' })])
    assert.equal((await catchError(store.get(1n))).status, 429)
    assert.equal(server.requests.length, 1)
  })

  it('sends one key with all attempts of a create, and another with the next create', async () => {
    const created = answer(200, { name: 'Ficus' }, { ETag: '"1"' })
    const { store, server } = await open([hangUp, answer(504, 'x'), created])
    await store.create({ id: 1n, name: 'Ficus' })
    await store.create({ id: 2n, name: 'Ficus' })
    const keys = server.requests.map(({ headers }) => headers['idempotency-key'])
    assert.match(String(keys[0]), /^[!-~]{20,255}$/)
    assert.equal(new Set(keys.slice(0, 3)).size, 1)
    assert.equal(new Set(keys).size, 2)
    const other = new PlantStore({ url: server.url, token: 'secret-token' })
    await other.create({ id: 1n, name: 'Ficus' })
    const otherKey = server.requests.at(-1)?.headers['idempotency-key']
    assert.ok(!keys.includes(otherKey))
  })
})

const more = { __proto__: null, more: 'x', constructor: 'y' }
const own = { id: 1n, name: 'x', tag: 'y' }
const sent = { id: 1, name: 'x', tag: 'y', ...more }

it('the client gives only the members of an answer that it knows', async () => {
  const event = { position: 'a', type: 'plant.created', at: 'now', plant: sent, ...more }
  const refused = [{ line: 1, id: 1, error: 40900, message: 'x', ...more }]
  const etag = { ETag: '"1"' }
  const { store } = await open([
    answer(200, sent, etag),
    answer(200, sent, etag),
    answer(200, sent, etag),
    answer(200, [sent, { id: 2, name: '', ...more }]),
    answer(200, { ...emptyReport, refused, ...more }),
    answer(200, `data: ${JSON.stringify(event)}\n\n`, { 'Content-Type': 'text/event-stream' }),
  ])
  assert.deepEqual(await store.create(own), { ...own, etag: '"1"' })
  assert.deepEqual(await store.get(1n), { ...own, etag: '"1"' })
  assert.deepEqual(await store.replace(1n, own), { ...own, etag: '"1"', created: false })
  assert.deepEqual(await Array.fromAsync(store.list()), [own, { id: 2n, name: '' }])
  assert.deepEqual(await store.importPlants([own]), {
    ...emptyReport,
    refused: [{ line: 1, id: 1n, error: 40900, message: 'x' }],
  })
  const { value } = await store.events().next()
  assert.deepEqual(value, { position: 'a', type: 'plant.created', at: 'now', plant: own })
})

describe('answers that the client throws at once', () => {
  const thrown: [title: string, script: Script, known: object][] = [
    ...[40003, 40101, 40102, 40300, 40400, 50000, 50700].map((error): [string, Script, object] => {
      const known = { error, message: 'A sentence.' }
      const status = Math.floor(error / 100)
      const script = answer(status, known, { 'X-Request-Id': 'r1' })
      return [`${error}`, script, { status, ...known, requestId: 'r1' }]
    }),
    ['a plant without an ETag', answer(200, { id: 1, name: 'x' }), { status: 200 }],
    ['another success', answer(202, { id: 1, name: 'x' }, { ETag: '"1"' }), { status: 202 }],
    ['404 of another server', answer(404, '<h1>Not found</h1>'), { status: 404 }],
    ['500 of another server', answer(500, 'x'), { status: 500, error: undefined }],
    ['JSON of another server', answer(400, { error: 'bad', message: 5 }), { status: 400 }],
    ['304', answer(304, ''), { status: 304 }],
  ]
  for (const [title, script, known] of thrown) {
    it(`throws a PlantStoreError for ${title}`, async () => {
      const { store, server } = await open([script])
      const error = await catchError(store.get(1n))
      for (const [name, value] of Object.entries(known)) {
        assert.equal(error[name as keyof PlantStoreError], value)
      }
      assert.match(error.message, /^[A-Z].+\.$/)
      assert.equal(server.requests.length, 1)
    })
  }

  it('follows no redirect, so the token goes to no other host', async () => {
    const other = await openScriptedServer(plant)
    const { store } = await open([answer(302, '', { Location: `${other.url}/plants/1` })])
    const { status, message } = await catchError(store.get(1n))
    assert.equal(status, 302)
    assert.match(message, /redirect/)
    assert.equal(other.requests.length, 0)
  })

  const one = { id: 1, name: 'x' }
  const half = { id: 1.5, name: 'x' }
  const malformed: [what: string, (store: PlantStore) => Promise<unknown>, bodies: unknown[]][] = [
    [
      'plant',
      (store) => store.get(1n),
      ['<h1>Welcome</h1>', '', null, [], { id: 1 }, { name: 'x' }, half, { ...one, tag: 5 }],
    ],
    [
      'page',
      (store) => store.list().next(),
      ['[', {}, null, [null], [{ id: 1 }], [{ id: 'x', name: 'y' }], [{ ...one, tag: null }]],
    ],
    [
      'report',
      (store) => store.importPlants([{ id: 1n, name: 'x' }]),
      [
        null,
        {},
        ...['1', 0.5].map((stored) => ({ ...emptyReport, stored })),
        ...[undefined, 'none', [null], [{ line: 1, id: 'x', error: 1, message: 'x' }]].map(
          (refused) => ({ ...emptyReport, refused }),
        ),
      ],
    ],
  ]
  for (const [what, call, bodies] of malformed) {
    it(`throws a PlantStoreError for a ${what} that is not what the contract says`, async () => {
      for (const body of bodies) {
        const { store, server } = await open([answer(200, body, { ETag: '"1"' })])
        assert.equal((await catchError(call(store))).status, 200, JSON.stringify(body))
        assert.equal(server.requests.length, 1)
      }
    })
  }

  it('does not believe a page that follows no plant', async () => {
    const { store, server } = await open([answer(200, [], { Link: '</plants>; rel="next"' })])
    assert.deepEqual(await Array.fromAsync(store.list()), [])
    assert.equal(server.requests.length, 1)
  })

  it('continues after an empty page, and after the last plant where Link does not say after which', async () => {
    const { store, server } = await open([
      answer(200, [], { Link: '</plants?after=5&limit=1>; rel="next"' }),
      answer(200, [{ id: 7, name: 'x' }], { Link: '</next>; rel="next"' }),
      answer(200, []),
    ])
    assert.deepEqual(await Array.fromAsync(store.list()), [{ id: 7n, name: 'x' }])
    const asked = server.requests.map(({ url }) => /[?&]after=(\d+)/.exec(String(url))?.[1])
    assert.deepEqual(asked, [undefined, '5', '7'])
  })

  it('refuses options that no header or URL can hold, before it sends anything', async () => {
    const { store, server } = await open([plant])
    await assert.rejects(store.replace(1n, { name: 'x' }, { ifMatch: '"ä\n"' }), TypeError)
    await assert.rejects(store.create({ id: 1n, name: 'x' }, { idempotencyKey: '€' }), TypeError)
    await assert.rejects(store.list({ tag: '\ud800' }).next(), URIError)
    await assert.rejects(store.events({ after: '\ud800' }).next(), URIError)
    await assert.rejects(store.list({ after: 1 as never }).next(), /^TypeError: id must be /)
    assert.equal(server.requests.length, 0)
  })
})

for (const [title, script] of [
  ['no answer', ignore],
  [
    'half an answer',
    (_request, response) => {
      response.writeHead(200, { 'Content-Length': 100 }).write('{"id":1,')
    },
  ],
] as [string, Script][]) {
  it(`the time-out ends an attempt with ${title}, and its connection`, async () => {
    let attempts = 0
    const counting: typeof fetch = (...request) => {
      attempts++
      return fetch(...request)
    }
    const options = { timeoutMs: 30, retries: 1, fetch: counting }
    const { store, server } = await open([script], options)
    const error = await catchError(store.get(1n))
    assert.match(error.message, /No answer within 30 ms\.$/)
    assert.equal(attempts, 2)
    await waitUntil(() => server.sockets.size === 0, 'no connection left')
  })
}

const maxBytes = 16 * 1024 * 1024
const tooMuch = Buffer.alloc(maxBytes + 1, ' ')

/** Sends one byte too many, and never ends. */
function endless(status: number, contentType = 'application/json'): Script {
  return (_request, response) => {
    response.writeHead(status, { 'Content-Type': contentType, 'X-Request-Id': 'r1' })
    response.write(tooMuch)
  }
}

const gzipped: Script = (_request, response) => {
  response.writeHead(200, { 'Content-Encoding': 'gzip' }).write(gzipSync(tooMuch))
}

const position = answer(200, '[]', { Link: '</events?after=p0>; rel="next"' })

describe('an answer of more than 16 MiB', () => {
  const cases: [string, (store: PlantStore) => Promise<unknown>, Script[]][] = [
    ['a get that is compressed', (store) => store.get(1n), [gzipped]],
    ['a get that would be retried', (store) => store.get(1n), [endless(503)]],
    ['a stream that is refused', (store) => store.events().next(), [endless(404)]],
    ['an event', (store) => store.events().next(), [endless(200, 'text/event-stream')]],
    ['a mirror', (store) => Array.fromAsync(store.mirror()), [position, endless(200)]],
  ]
  for (const [title, call, scripts] of cases) {
    it(`to ${title} ends the call and the connection, and is not asked for again`, async () => {
      const { store, server } = await open(scripts, { retries: 1 })
      const { requests } = server
      await assert.rejects(call(store), {
        name: 'PlantStoreError',
        error: undefined,
        message: 'The answer of the service exceeds 16 MiB: check the url.',
      })
      assert.equal(requests.length, scripts.length)
      await waitUntil(() => requests.at(-1)?.socket.destroyed === true, 'the connection is closed')
    })
  }

  it('has the status and the request id that came with it', async () => {
    const { store } = await open([endless(200)])
    await assert.rejects(store.get(1n), { status: 200, requestId: 'r1' })
  })

  it('is not one of 16 MiB, which is read', async () => {
    const padded = '{"id":1,"name":"Ficus"}'.padEnd(maxBytes)
    const { store } = await open([answer(200, padded, { ETag: '"1"' })])
    assert.deepEqual(await store.get(1n), state)
  })
})
