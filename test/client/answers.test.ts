import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { emptyReport } from '../../client/import-parts.ts'
import { PlantStore, PlantStoreError, type PlantStoreOptions } from '../../client/index.ts'
import { waitUntil } from '../support/wait.ts'
import { answer, openScriptedServer, type Script } from './scripted-server.ts'
import { countTimers } from './timers.ts'

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
    ['seconds', () => '1'],
    ['a date', () => new Date(Date.now() + 2_000).toUTCString()],
  ] as const) {
    it(`waits as long as Retry-After says in ${title}`, async () => {
      let refusedAt = 0
      const refuse: Script = (request, response) => {
        refusedAt = performance.now()
        answer(503, overloaded, { 'Retry-After': toValue() })(request, response)
      }
      const { store } = await open([refuse, plant])
      await store.get(1n)
      // A date has no milliseconds.
      assert.ok(performance.now() - refusedAt > 950)
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

describe('answers with members that the client does not know', () => {
  const more = { __proto__: null, more: 'x', constructor: 'y' }
  const own = { id: 1n, name: 'x', tag: 'y' }
  const sent = { id: 1, name: 'x', tag: 'y', ...more }

  it('give only those that it does', async () => {
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
})

describe('answers that the client throws at once', () => {
  const thrown: [title: string, script: Script, known: object][] = [
    ...[
      [400, 40003],
      [401, 40101],
      [401, 40102],
      [403, 40300],
      [404, 40400],
      [500, 50000],
      [507, 50700],
    ].map(([status = 0, error]): [string, Script, object] => [
      `${error}`,
      answer(status, { error, message: 'A sentence.' }, { 'X-Request-Id': 'r1' }),
      { status, error, message: 'A sentence.', requestId: 'r1' },
    ]),
    ['HTML', answer(200, '<h1>Welcome</h1>'), { status: 200, error: undefined }],
    ['an empty body', answer(200, ''), { status: 200, error: undefined }],
    ['null', answer(200, null, { ETag: '"1"' }), { status: 200 }],
    ['an array for a plant', answer(200, [], { ETag: '"1"' }), { status: 200 }],
    ['a plant without a name', answer(200, { id: 1 }, { ETag: '"1"' }), { status: 200 }],
    ['a plant without an id', answer(200, { name: 'x' }, { ETag: '"1"' }), { status: 200 }],
    ['a tag that is no text', answer(200, { id: 1, name: 'x', tag: 5 }, { ETag: '"1"' }), {}],
    ['half an id', answer(200, { id: 1.5, name: 'x' }, { ETag: '"1"' }), { status: 200 }],
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

  const wrongPages = [
    '{}',
    'null',
    '[null]',
    '[{"id":1}]',
    '[{"id":"x","name":"y"}]',
    '[{"id":1,"name":"y","tag":null}]',
    '[',
  ]
  for (const page of wrongPages) {
    it(`throws a PlantStoreError for the page ${page}`, async () => {
      const { store } = await open([answer(200, page)])
      assert.equal((await catchError(store.list().next())).status, 200)
    })
  }

  const wrongReports = [
    'null',
    '{}',
    JSON.stringify({ ...emptyReport, stored: '1' }),
    JSON.stringify({ ...emptyReport, stored: -1 }),
    JSON.stringify({ ...emptyReport, stored: 0.5 }),
    JSON.stringify({ ...emptyReport, stored: 2 ** 31 }),
    JSON.stringify({ ...emptyReport, refused: undefined }),
    JSON.stringify({ ...emptyReport, refused: 'none' }),
    JSON.stringify({ ...emptyReport, refused: [null] }),
    JSON.stringify({ ...emptyReport, refused: [{ line: 1, error: 40900 }] }),
    JSON.stringify({ ...emptyReport, refused: [{ line: '1', error: 40900, message: 'x' }] }),
    JSON.stringify({ ...emptyReport, refused: [{ line: 1, id: 'x', error: 1, message: 'x' }] }),
  ]
  for (const report of wrongReports) {
    it(`throws a PlantStoreError for the report ${report}`, async () => {
      const { store } = await open([answer(200, report)])
      const { status } = await catchError(store.importPlants([{ id: 1n, name: 'x' }]))
      assert.equal(status, 200)
    })
  }

  it('does not believe a page that follows no plant', async () => {
    const { store, server } = await open([answer(200, [], { Link: '</plants>; rel="next"' })])
    assert.deepEqual(await Array.fromAsync(store.list()), [])
    assert.equal(server.requests.length, 1)
  })

  it('goes on after the last plant where Link does not say after which', async () => {
    const headers = { Link: '</next>; rel="next"' }
    const { store, server } = await open([
      answer(200, [{ id: 7, name: 'x' }], headers),
      answer(200, []),
    ])
    assert.deepEqual(await Array.fromAsync(store.list()), [{ id: 7n, name: 'x' }])
    assert.match(server.requests[1]?.url ?? '', /[?&]after=7(&|$)/)
  })

  it('refuses options that no header can hold, before it sends anything', async () => {
    const { store, server } = await open([plant])
    await assert.rejects(store.replace(1n, { name: 'x' }, { ifMatch: '"ä\n"' }), TypeError)
    await assert.rejects(store.create({ id: 1n, name: 'x' }, { idempotencyKey: '' }), TypeError)
    assert.throws(() => store.list({ tag: '\ud800' }), /^TypeError: tag must be /)
    assert.throws(() => store.list({ name: '\ud800' }), /^TypeError: name must be /)
    assert.throws(() => store.list({ after: 1 as never }), /^TypeError: id must be /)
    assert.equal(server.requests.length, 0)
  })
})

describe('the time-out of an attempt', () => {
  for (const [title, script] of [
    ['no answer', ignore],
    [
      'half an answer',
      (_request, response) => {
        response.writeHead(200, { 'Content-Length': 100 }).write('{"id":1,')
      },
    ],
  ] as [string, Script][]) {
    it(`ends an attempt with ${title}, and its connection`, async () => {
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
})

describe('a signal', () => {
  const reason = new Error('changed my mind')
  const isReason = (error: unknown) => error === reason

  it('that has aborted sends nothing', async () => {
    const { store, server } = await open([plant])
    const signal = AbortSignal.abort(reason)
    await assert.rejects(store.get(1n, { signal }), isReason)
    await assert.rejects(store.create({ id: 1n, name: 'x' }, { signal }), isReason)
    await assert.rejects(store.replace(1n, { name: 'x' }, { signal }), isReason)
    await assert.rejects(
      store.update(1n, (one) => one, { signal }),
      isReason,
    )
    await assert.rejects(store.delete(1n, { signal }), isReason)
    await assert.rejects(store.list({ signal }).next(), isReason)
    await assert.rejects(store.importPlants([{ id: 1n, name: 'x' }], { signal }), isReason)
    await assert.rejects(store.events({ signal }).next(), isReason)
    assert.equal(server.requests.length, 0)
  })

  it('ends a request, its timer and its connection', async () => {
    const { store, server } = await open([ignore])
    const controller = new AbortController()
    const timers = countTimers()
    const call = store.get(1n, { signal: controller.signal })
    await waitUntil(() => server.requests.length === 1, 'the request has come')
    controller.abort(reason)
    await assert.rejects(call, isReason)
    assert.equal(countTimers(), timers)
    await waitUntil(() => server.sockets.size === 0, 'no connection left')
  })

  it('ends a pause before a retry, and its timer', async () => {
    const { store, server } = await open([answer(503, overloaded, { 'Retry-After': '50' })])
    const controller = new AbortController()
    const timers = countTimers()
    const call = store.get(1n, { signal: controller.signal })
    await waitUntil(
      () => server.requests.length === 1 && countTimers() === timers + 1,
      'the call pauses',
    )
    controller.abort(reason)
    await assert.rejects(call, isReason)
    assert.equal(countTimers(), timers)
  })

  it('has no listener of a call that has ended', async () => {
    const { store } = await open([hangUp, plant])
    const { signal } = new AbortController()
    let listeners = 0
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    signal.addEventListener = (...all: Parameters<typeof add>) => {
      listeners++
      add(...all)
    }
    signal.removeEventListener = (...all: Parameters<typeof remove>) => {
      listeners--
      remove(...all)
    }
    await store.get(1n, { signal })
    assert.equal(listeners, 0)
  })
})
