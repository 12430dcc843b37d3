import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { authorized, startService, type TestService } from '../support/service.ts'

const origin = 'https://garden.example'
const memory = 'sqlite::memory:'

describe('a page of another origin', () => {
  let service: TestService
  let narrow: TestService
  before(async () => {
    service = await startService(memory)
    narrow = await startService(memory, {
      env: { CORS_ORIGIN: `https://other.example, ${origin}` },
    })
  })

  it('may send a preflight without a token', async () => {
    const answer = await service.call({
      method: 'OPTIONS',
      path: '/plants',
      headers: { Authorization: [], Origin: origin, 'Access-Control-Request-Method': 'POST' },
    })
    assert.equal(answer.status, 204)
    assert.equal(answer.headers.get('access-control-allow-origin'), '*')
    assert.equal(answer.headers.get('access-control-allow-methods'), 'GET, HEAD, OPTIONS, POST')
    assert.equal(answer.headers.get('access-control-max-age'), '7200')
    const allowed = 'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match'
    assertLists(answer.headers.get('access-control-allow-headers'), allowed)
  })

  it('may read the answer and its meaningful headers', async () => {
    const answer = await service.create('{"id":1,"name":"x"}', { Origin: origin })
    assert.equal(answer.headers.get('access-control-allow-origin'), '*')
    const exposed =
      'Link, Location, ETag, Retry-After, WWW-Authenticate, Idempotency-Replayed, X-Request-Id'
    assertLists(answer.headers.get('access-control-expose-headers'), exposed)
  })

  const failures = [
    { path: '/plants/1', headers: { Authorization: [] } },
    { path: '/nothing' },
    { path: '/plants/%zz' },
    { path: '/plants/1', method: 'PATCH' },
    { path: '/plants', method: 'POST', headers: { Host: ['a', 'b'] } },
    { path: '/plants', method: 'POST', headers: { Expect: 'x' } },
  ]
  for (const { headers, ...request } of failures) {
    it(`may read why ${request.method ?? 'GET'} ${request.path} failed`, async () => {
      const answer = await service.call({ ...request, headers: { ...headers, Origin: origin } })
      assert.ok(answer.status >= 400)
      assert.equal(answer.headers.get('access-control-allow-origin'), '*')
    })
  }

  it('is allowed only if the operator names it, when origins are named', async () => {
    const named = await narrow.call({ path: '/plants/1', headers: { Origin: origin } })
    assert.equal(named.headers.get('access-control-allow-origin'), origin)
    assert.equal(named.headers.get('vary'), 'Origin')
    const unnamed = await narrow.call({
      path: '/plants/1',
      headers: { Origin: 'https://evil.example' },
    })
    assert.equal(unnamed.headers.get('access-control-allow-origin'), undefined)
    assert.equal(unnamed.headers.get('vary'), 'Origin')
  })

  it('makes an export vary by its origin, in one field with all else that it varies by', async () => {
    // A client that joins repeated fields would show one that is there twice.
    const headers = { ...authorized, Origin: origin }
    const answer = await fetch(`${narrow.url}/plants.csv`, { headers })
    await answer.text()
    assert.equal(answer.headers.get('vary'), 'Origin, Accept-Encoding')
  })

  it('adds no header to the answers to other clients', async () => {
    const { headers } = await service.call({ path: '/plants/1' })
    assert.equal(
      [...headers.keys()].some((name) => name.startsWith('access-control')),
      false,
    )
  })
})

/** Checks that a header lists all of these names. */
function assertLists(header: string | undefined, names: string): void {
  const listed = new Set(header?.split(', '))
  assert.deepEqual(
    names.split(', ').filter((name) => !listed.has(name)),
    [],
  )
}
