import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { scopes } from '../../src/contract/scopes.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { engines } from '../support/engines.ts'
import { lowerLimit } from '../support/limits.ts'
import { releaseAfterTest } from '../support/release.ts'
import { authorized, json, startService, type TestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'

const memory = 'sqlite::memory:'

/** Sends a request with a token until it is refused. */
function waitForRefusal(service: TestService, headers: { Authorization: string }): Promise<void> {
  const isRefused = async () => (await service.call({ path: '/plants/1', headers })).status === 401
  return waitUntil(isRefused, 'the token is refused')
}

it('compresses the document for those that take it so', async () => {
  const { url } = await startService(memory)
  const ask = (encoding: string) =>
    fetch(`${url}/openapi.json`, { headers: { 'Accept-Encoding': encoding } })
  const [plain, gzipped] = [await ask('identity'), await ask('gzip')]
  assert.equal(plain.headers.get('content-encoding'), null)
  assert.equal(gzipped.headers.get('content-encoding'), 'gzip')
  assert.equal(await gzipped.text(), await plain.text())
  assert.notEqual(gzipped.headers.get('etag'), plain.headers.get('etag'))
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

describe('two services in one process', () => {
  it('cut no client for what those of the other do not read', async (t) => {
    lowerLimit(t, 'unreadBytes', 30_000_000)
    const services = [await startService(memory), await startService(memory)]
    const unread = []
    for (const service of services) {
      await service.store.createPlant({ id: 1n, name: '\u0001'.repeat(1_000_000) })
      unread.push(...(await holdAnswers(service, 4)))
    }
    const cut = await Promise.all(unread.map(isCut))
    assert.deepEqual(cut, Array(8).fill(false))
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
