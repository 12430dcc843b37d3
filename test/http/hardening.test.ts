import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { before, describe, it } from 'node:test'
import { limits } from '../../src/contract/limits.ts'
import { scopes } from '../../src/contract/scopes.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { engines } from '../support/engines.ts'
import { lowerLimit } from '../support/limits.ts'
import { releaseAfterTest } from '../support/release.ts'
import {
  authorized,
  json,
  operatorToken,
  startService,
  type TestService,
} from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { exchange, openSocket, type Request, toBytes } from '../support/wire.ts'

const memory = 'sqlite::memory:'

/** Sends a request with a token until it is refused. */
function waitForRefusal(service: TestService, headers: { Authorization: string }): Promise<void> {
  const isRefused = async () => (await service.call({ path: '/plants/1', headers })).status === 401
  return waitUntil(isRefused, 'the token is refused')
}

describe('every answer', () => {
  let service: TestService
  before(async () => {
    service = await startService(memory)
    await service.create('{"id":1,"name":"x"}')
  })

  const cacheControls: [path: string, cacheControl: string | undefined][] = [
    ['/plants', 'private, no-cache'],
    ['/plants/1', 'private, no-cache'],
    ['/plants/404', 'private, no-cache'],
    ['/healthz', 'no-store'],
    ['/readyz', 'no-store'],
    ['/openapi.json', 'no-cache'],
    ['/nowhere', undefined],
  ]
  for (const [path, cacheControl] of cacheControls) {
    it(`tells caches what they may do with ${path}, and browsers not to guess`, async () => {
      const { headers } = await service.call({ path })
      assert.equal(headers.get('cache-control'), cacheControl)
      assert.equal(headers.get('x-content-type-options'), 'nosniff')
      const anonymous = await service.call({ path, headers: { Authorization: 'Basic x' } })
      assert.equal(anonymous.headers.get('cache-control'), cacheControl)
    })
  }

  it('has a document that is compressed for those that take it so', async () => {
    const path = '/openapi.json'
    const plain = await fetch(`${service.url}${path}`, {
      headers: { 'Accept-Encoding': 'identity' },
    })
    const gzipped = await fetch(`${service.url}${path}`, { headers: { 'Accept-Encoding': 'gzip' } })
    assert.equal(plain.headers.get('content-encoding'), null)
    assert.equal(gzipped.headers.get('content-encoding'), 'gzip')
    assert.equal(await gzipped.text(), await plain.text())
    assert.notEqual(gzipped.headers.get('etag'), plain.headers.get('etag'))
  })

  it('has nosniff, even when the parser refuses the request', async () => {
    const [answer] = await exchange(service.url, Buffer.from('GARBAGE\r\n\r\n'))
    assert.equal(answer?.headers.get('x-content-type-options'), 'nosniff')
  })
})

describe('a body', () => {
  let service: TestService
  before(async () => {
    service = await startService(memory)
  })
  const toChunked = (method: string, path: string, headers: Record<string, string>) =>
    toBytes({ method, path, headers: { ...headers, 'Transfer-Encoding': 'chunked' } })

  it('is stored when it comes in chunks of one byte', async () => {
    const name = 'n'.repeat(900)
    const body = [...`{"id":1,"name":"${name}"}`].map((byte) => `1\r\n${byte}\r\n`).join('')
    const bytes = Buffer.concat([
      toChunked('POST', '/plants', json),
      Buffer.from(`${body}0\r\n\r\n`),
    ])
    const [answer] = await exchange(service.url, bytes)
    assert.equal(answer?.status, 200)
    const { body: stored } = await service.call({ path: '/plants/1' })
    assert.equal(JSON.parse(stored).name, name)
  })

  it('is refused with 413 when it has more chunks than are allowed', async () => {
    const body = `{"id":3,"name":"${'x'.repeat(limits.bodyBytes - 18)}"}`
    assert.equal(body.length, limits.bodyBytes)
    const chunks = [...body].map((byte) => `1\r\n${byte}\r\n`).join('')
    const bytes = Buffer.concat([
      toChunked('POST', '/plants', json),
      Buffer.from(`${chunks}0\r\n\r\n`),
    ])
    const [answer] = await exchange(service.url, bytes)
    assert.equal(answer?.status, 413)
    assert.match(answer?.body ?? '', /more than 1000 chunks/)
    assert.equal(answer?.headers.get('connection'), 'close')
    assert.equal((await service.call({ path: '/plants/3' })).status, 404)
  })

  for (const [title, headers, body] of [
    ['by its length', { 'Content-Length': '2000000' }, ''],
    ['by its chunks', { 'Transfer-Encoding': 'chunked' }, `200000\r\n${'x'.repeat(0x200000)}`],
  ] as const) {
    it(`makes a DELETE fail when it is too large ${title}, and nothing is deleted`, async () => {
      await service.create('{"id":2,"name":"x"}')
      const head = toBytes({
        method: 'DELETE',
        path: '/plants/2',
        headers: { ...authorized, ...headers },
      })
      const [answer] = await exchange(service.url, Buffer.concat([head, Buffer.from(body)]))
      assert.equal(answer?.status, 413)
      assert.equal((await service.call({ path: '/plants/2' })).status, 200)
    })
  }
})

describe('a token that is revoked during its request', () => {
  for (const engine of engines) {
    it(`writes nothing, on ${engine.name}`, async () => {
      const store = await engine.open(await engine.newUrl())
      const service = await startService(memory, { store })
      const { token, record } = await issueToken(store, {
        name: 'test',
        scopes,
        lifetimeMs: undefined,
      })
      const authorization = { Authorization: `Bearer ${token}` }
      const headers = { ...json, ...authorization, Connection: 'close' }
      const body = '{"id":1,"name":"x"}'
      const socket = openSocket(service.url)
      const received = text(socket)
      socket.write(toBytes({ method: 'POST', path: '/plants', headers, body }).subarray(0, -5))
      await service.call({ path: '/plants/1', headers: authorization })
      await store.revokeToken(record.id, Date.now())
      await waitForRefusal(service, authorization)
      socket.write(body.slice(-5))
      assert.match(await received, /^HTTP\/1\.1 401[\s\S]*40101/)
      assert.equal((await service.call({ path: '/plants/1' })).status, 404)
    })

    it(`ends its export, on ${engine.name}`, async () => {
      const store = await engine.open(await engine.newUrl())
      const service = await startService(memory, { store })
      const name = 'x'.repeat(500_000)
      const count = 30
      for (let id = 0; id < count; id++) await store.createPlant({ id: BigInt(id), name })
      const { token, record } = await issueToken(store, {
        name: 'test',
        scopes,
        lifetimeMs: undefined,
      })
      const authorization = { Authorization: `Bearer ${token}` }
      const response = await fetch(`${service.url}/plants.ndjson`, {
        headers: { ...authorization, 'Accept-Encoding': 'identity' },
      })
      assert.equal(response.status, 200)
      await store.revokeToken(record.id, Date.now())
      await waitForRefusal(service, authorization)
      await assert.rejects(response.text())
    })
  }
})

describe('a create with a precondition', () => {
  let service: TestService
  let etag: string
  before(async () => {
    service = await startService(memory)
    etag = (await service.create('{"id":1,"name":"x"}')).headers.get('etag') ?? ''
  })

  const cases: [title: string, id: number, name: string, value: string, status: number][] = [
    ['If-Match with the tag of the plant', 1, 'If-Match', 'its tag', 412],
    ['If-Match for an absent plant', 2, 'If-Match', '*', 412],
    ['If-None-Match: * for a used id', 1, 'If-None-Match', '*', 412],
    ['If-None-Match with the tag of the plant', 1, 'If-None-Match', 'its tag', 412],
    ['If-None-Match with another tag', 1, 'If-None-Match', '"1"', 409],
    ['If-None-Match: * for a free id', 3, 'If-None-Match', '*', 200],
    ['If-None-Match with a tag for a free id', 4, 'If-None-Match', 'its tag', 200],
  ]
  for (const [title, id, name, value, status] of cases) {
    it(`is ${status}: ${title}`, async () => {
      const first = await service.call({ path: `/plants/${id}` })
      const headers = { [name]: value === 'its tag' ? etag : value }
      const answer = await service.create(`{"id":${id},"name":"y"}`, headers)
      assert.equal(answer.status, status)
      const second = await service.call({ path: `/plants/${id}` })
      if (status !== 200) assert.equal(second.body, first.body)
      else assert.equal(second.status, 200)
    })
  }
})

describe('an idempotency key', () => {
  it('is refused when its token has used as many as it may', async (t) => {
    lowerLimit(t, 'keysOfToken', 2)
    const service = await startService(memory)
    const { token } = await issueToken(service.store, { name: 'x', scopes, lifetimeMs: undefined })
    const create = async (id: number, headers: Record<string, string> = {}) => {
      const key = { 'Idempotency-Key': `key-${id}` }
      const { status } = await service.create(`{"id":${id},"name":"x"}`, { ...key, ...headers })
      return status
    }
    for (const [id, status] of [200, 200, 503].entries()) assert.equal(await create(id), status)
    assert.equal((await service.call({ path: '/plants/2' })).status, 404)
    assert.equal(await create(3, { Authorization: `Bearer ${token}` }), 200)
  })
})

describe('a page of control characters', () => {
  it('ends at 1 MiB of JSON, and has one plant at least', async () => {
    const service = await startService(memory)
    // Earlier releases stored plants of up to 1 MiB: as JSON, six bytes for each of these.
    const name = '\u0001'.repeat(300_000)
    for (const id of [1n, 2n]) await service.store.createPlant({ id, name })
    for (const id of [3n, 4n]) await service.store.createPlant({ id, name: 'small' })
    const lists: [query: string, ids: number[], link: RegExp | undefined][] = [
      ['', [1], /after=1>/],
      ['?after=1', [2], /after=2>/],
      ['?after=2', [3, 4], undefined],
    ]
    for (const [query, ids, link] of lists) {
      const answer = await service.call({ path: `/plants${query}` })
      assert.deepEqual(
        JSON.parse(answer.body).map((plant: { id: number }) => plant.id),
        ids,
      )
      assert.match(answer.headers.get('link') ?? '', link ?? /^$/)
    }
  })
})

describe('a plant that is longer than a megabyte as JSON', () => {
  it('is complete, wherever it is divided on its way', async () => {
    const service = await startService(memory)
    for (const id of [0, 1]) {
      const name = 'x'.repeat(id) + '\u0001\u{1f33f}'.repeat(150_000)
      await service.store.createPlant({ id: BigInt(id), name })
      const answer = await fetch(`${service.url}/plants/${id}`, { headers: authorized })
      assert.ok(Number(answer.headers.get('content-length')) > 1_200_000)
      assert.deepEqual(await answer.json(), { id, name })
    }
  })
})

/** Asks for plant 1 on this many connections, and reads none of the answers. */
async function holdAnswers(service: TestService, count: number): Promise<Socket[]> {
  const request = { path: '/plants/1', headers: { ...authorized, Connection: 'close' } }
  const sockets = Array.from({ length: count }, () => openSocket(service.url).pause())
  for (const socket of sockets) {
    socket.on('error', () => {}).write(toBytes(request))
    await service.call({ path: '/plants/2' })
  }
  return sockets
}

/** Whether a connection is cut before its answer is complete. */
async function isCut(socket: Socket): Promise<boolean> {
  const answer = await text(socket).catch(() => '')
  return !answer.endsWith('}')
}

describe('answers that are not read', () => {
  it('are cut beyond the bound, those first that have waited longest', async (t) => {
    lowerLimit(t, 'unreadBytes', 30_000_000)
    const service = await startService(memory)
    // As JSON, it takes six million bytes.
    await service.store.createPlant({ id: 1n, name: '\u0001'.repeat(1_000_000) })
    const unread = await holdAnswers(service, 6)
    const cut = await Promise.all(unread.map(isCut))
    assert.deepEqual(cut, [true, true, true, false, false, false])
  })
})

describe('answers that were read', () => {
  it('take no room any more: a client gets as many as it reads', async (t) => {
    lowerLimit(t, 'unreadBytes', 16_000_000)
    const service = await startService(memory)
    await service.store.createPlant({ id: 1n, name: '\u0001'.repeat(1_000_000) })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    releaseAfterTest(() => agent.destroy())
    for (let answer = 0; answer < 5; answer++) {
      const sent = get(`${service.url}/plants/1`, { agent, headers: authorized })
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      for await (const _ of response);
      assert.equal(sent.reusedSocket, answer > 0)
    }
  })
})

describe('messages', () => {
  let service: TestService
  before(async () => {
    service = await startService(memory)
  })
  const cases: [path: string, number: number, message: RegExp][] = [
    ['/plants/', 40400, /Leave out the slash at the end/],
    ['/nowhere/', 40400, /See \/docs/],
    ['/plants/%ff', 40000, /not UTF-8/],
    ['/plants/%zz', 40000, /percent sign/],
    ['/plants?tag=%ff', 40005, /tag is not UTF-8/],
    ['/plants?tag=a&tag=a', 40005, /tag is given twice/],
    ['/plants?limit=x', 40005, /limit must be a number from 1 to 1000, not "x"\.$/],
  ]
  for (const [path, number, message] of cases) {
    it(`say what is wrong with ${path}`, async () => {
      const { body } = await service.call({ path })
      const error = JSON.parse(body)
      assert.equal(error.error, number)
      assert.match(error.message, message)
    })
  }

  it('never repeat a token that was sent in the wrong place', async () => {
    const requests: Request[] = [
      { path: `/plants?limit=${operatorToken}` },
      { path: `/events?after=${operatorToken}` },
      { path: '/plants/1', headers: { 'If-Match': operatorToken } },
      { path: '/plants/1', headers: { 'If-None-Match': `Bearer ${operatorToken}` } },
    ]
    for (const request of requests) {
      const { body } = await service.call(request)
      assert.equal(JSON.parse(body).error, 40005)
      assert.ok(!body.includes(operatorToken), body)
    }
  })

  it('refuse a part of a plant', async () => {
    const headers = { ...json, 'Content-Range': 'bytes 0-1/2' }
    const answer = await service.call({
      method: 'PUT',
      path: '/plants/1',
      headers,
      body: '{"name":"x"}',
    })
    assert.equal(JSON.parse(answer.body).error, 40005)
    assert.equal((await service.call({ path: '/plants/1' })).status, 404)
  })

  it('can be read by a page that asks for an unknown path', async () => {
    const headers = { Origin: 'https://a.example', 'Access-Control-Request-Method': 'GET' }
    const preflight = await service.call({ method: 'OPTIONS', path: '/nowhere', headers })
    assert.equal(preflight.status, 204)
    assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /GET/)
    assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /traceparent/)
    const plain = await service.call({ method: 'OPTIONS', path: '/nowhere' })
    assert.equal(plain.status, 404)
  })
})
