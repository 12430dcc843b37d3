import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { scopes } from '../../src/contract/scopes.ts'
import { buildHandlers } from '../../src/http/handlers.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { engines } from '../support/engines.ts'
import { authorized, json, startService } from '../support/service.ts'
import { exchange, toBytes } from '../support/wire.ts'

const memory = 'sqlite::memory:'

describe('every answer', async () => {
  const service = await startService(memory)
  await service.create('{"id":1,"name":"x"}')

  const cacheControls: [path: string, cacheControl: string | undefined][] = [
    ['/plants', 'private, no-cache'],
    ['/plants/1', 'private, no-cache'],
    ['/plants/404', 'private, no-cache'],
    ['/healthz', 'no-store'],
    ['/readyz', 'no-store'],
    ['/openapi.json', undefined],
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

  it('of the parser has nosniff, too', async () => {
    const [answer] = await exchange(service.url, Buffer.from('GARBAGE\r\n\r\n'))
    assert.equal(answer?.headers.get('x-content-type-options'), 'nosniff')
  })
})

describe('a body', async () => {
  const service = await startService(memory)
  const toChunked = (method: string, path: string, headers: Record<string, string>) =>
    toBytes({ method, path, headers: { ...headers, 'Transfer-Encoding': 'chunked' } })

  it('is stored when it comes in chunks of one byte', async () => {
    const name = 'n'.repeat(5_000)
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

  it('in more chunks than are allowed is refused with 413', async () => {
    const bytes = Buffer.concat([
      toChunked('POST', '/plants', json),
      Buffer.from('1\r\n \r\n'.repeat(20_000)),
    ])
    const [answer] = await exchange(service.url, bytes)
    assert.equal(answer?.status, 413)
    assert.match(answer?.body ?? '', /16384 chunks/)
  })

  for (const [title, headers, body] of [
    ['by its length', { 'Content-Length': '2000000' }, ''],
    ['by its chunks', { 'Transfer-Encoding': 'chunked' }, `200000\r\n${'x'.repeat(0x200000)}`],
  ] as const) {
    it(`of a DELETE that is too large ${title} is refused, and nothing is deleted`, async () => {
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

describe('a token that is revoked while its request is under way', async () => {
  for (const engine of engines) {
    it(`writes nothing, on ${engine.name}`, async (t) => {
      const store = await engine.open(await engine.newUrl())
      const service = await startService(memory, { store })
      t.after(() => service.close())
      const { token, record } = await issueToken(store, {
        name: 'test',
        scopes,
        lifetimeMs: undefined,
      })
      const headers = { ...json, Authorization: `Bearer ${token}`, Connection: 'close' }
      const body = '{"id":1,"name":"x"}'
      const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
      const received = text(socket)
      socket.write(toBytes({ method: 'POST', path: '/plants', headers, body }).subarray(0, -5))
      await service.call({ path: '/plants/1', headers: { Authorization: `Bearer ${token}` } })
      await store.revokeToken(record.id, Date.now())
      const isRefused = async () =>
        (await service.call({ path: '/plants/1', headers: { Authorization: `Bearer ${token}` } }))
          .status === 401
      while (!(await isRefused()));
      socket.write(body.slice(-5))
      assert.match(await received, /^HTTP\/1\.1 401[\s\S]*40101/)
      assert.equal((await service.call({ path: '/plants/1' })).status, 404)
    })

    it(`ends its export, on ${engine.name}`, async (t) => {
      const store = await engine.open(await engine.newUrl())
      const service = await startService(memory, { store })
      t.after(() => service.close())
      const name = 'x'.repeat(500_000)
      const count = 60
      for (let id = 0; id < count; id++) await store.createPlant({ id: BigInt(id), name })
      const { token, record } = await issueToken(store, {
        name: 'test',
        scopes,
        lifetimeMs: undefined,
      })
      const authorization = { Authorization: `Bearer ${token}` }
      const response = await fetch(`${service.url}/plants`, {
        headers: {
          ...authorization,
          Accept: 'application/x-ndjson',
          'Accept-Encoding': 'identity',
        },
      })
      assert.equal(response.status, 200)
      await store.revokeToken(record.id, Date.now())
      while ((await service.call({ path: '/plants/1', headers: authorization })).status !== 401);
      await assert.rejects(response.text())
    })
  }
})

describe('a create with a precondition', async () => {
  const service = await startService(memory)
  const first = await service.create('{"id":1,"name":"x"}')
  const etag = first.headers.get('etag') ?? ''
  const cases: [title: string, id: number, headers: Record<string, string>, status: number][] = [
    ['If-Match with the tag of the plant', 1, { 'If-Match': etag }, 412],
    ['If-Match for a plant that is not there', 2, { 'If-Match': '*' }, 412],
    ['If-None-Match: * for an id that is taken', 1, { 'If-None-Match': '*' }, 412],
    ['If-None-Match with the tag of the plant', 1, { 'If-None-Match': etag }, 412],
    ['If-None-Match with another tag', 1, { 'If-None-Match': '"1"' }, 409],
    ['If-None-Match: * for an id that is free', 3, { 'If-None-Match': '*' }, 200],
    ['If-None-Match with any tag for an id that is free', 4, { 'If-None-Match': etag }, 200],
  ]
  for (const [title, id, headers, status] of cases) {
    it(`is ${status}: ${title}`, async () => {
      const before = await service.call({ path: `/plants/${id}` })
      const answer = await service.create(`{"id":${id},"name":"y"}`, headers)
      assert.equal(answer.status, status)
      const after = await service.call({ path: `/plants/${id}` })
      if (status !== 200) assert.equal(after.body, before.body)
      else assert.equal(after.status, 200)
    })
  }
})

describe('an idempotency key', () => {
  it('is refused when its token has used as many as it may', async (t) => {
    const engine = engines[0] as (typeof engines)[number]
    const store = await engine.open(await engine.newUrl())
    t.after(() => store.close())
    const { createPlant } = buildHandlers(store, 2)
    const create = (id: bigint, tokenId: string) =>
      createPlant({
        body: { id, name: 'x' },
        parameters: {
          'Idempotency-Key': `key-${id}`,
          'If-Match': undefined,
          'If-None-Match': undefined,
        },
        baseUrl: '',
        tokenId,
        format: undefined,
      })
    await create(1n, 'one')
    await create(2n, 'one')
    await assert.rejects(create(3n, 'one'), { number: 50300 })
    assert.equal(await store.getPlant(3n), undefined)
    assert.equal((await create(4n, 'other')).status, 200)
  })
})

describe('a page of control characters', async () => {
  it('is streamed when its JSON is too large to hold, and complete', async () => {
    const service = await startService(memory)
    const count = 5
    const name = '\\u0001'.repeat(150_000)
    for (let id = 0; id < count; id++) await service.create(`{"id":${id},"name":"${name}"}`)
    const answer = await fetch(`${service.url}/plants?limit=4`, { headers: authorized })
    assert.equal(answer.headers.get('content-length'), null)
    assert.match(answer.headers.get('link') ?? '', /after=3>/)
    const plants = (await answer.json()) as { id: number; name: string }[]
    assert.deepEqual(
      plants.map((plant) => [plant.id, plant.name.length]),
      [0, 1, 2, 3].map((id) => [id, 150_000]),
    )
  })
})

describe('messages', async () => {
  const service = await startService(memory)
  const cases: [path: string, number: number, message: RegExp][] = [
    ['/plants/', 40400, /Leave out the slash at the end/],
    ['/nowhere/', 40400, /See \/docs/],
    ['/plants/%ff', 40000, /not UTF-8/],
    ['/plants/%zz', 40000, /percent sign/],
    ['/plants?tag=%ff', 40005, /tag is not UTF-8/],
    ['/plants?tag=a&tag=a', 40005, /tag is given twice/],
    ['/plants?limit=x', 40005, /limit must be a number from 1 to 1000\.$/],
  ]
  for (const [path, number, message] of cases) {
    it(`say what is wrong with ${path}`, async () => {
      const { body } = await service.call({ path })
      const error = JSON.parse(body)
      assert.equal(error.error, number)
      assert.match(error.message, message)
    })
  }

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
