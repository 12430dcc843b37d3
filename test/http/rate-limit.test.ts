import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { Scope } from '../../src/contract/scopes.ts'
import { stopClock } from '../support/clock.ts'
import { lowerLimit } from '../support/limits.ts'
import { startService } from '../support/service.ts'
import { type Answer, call } from '../support/wire.ts'

/** Starts a service that allows three requests a second, on a clock that only the test moves. */
async function startLimited(test: TestContext) {
  const clock = stopClock(test)
  const service = await startService('sqlite::memory:', { env: { RATE_LIMIT: '3/s' } })

  /** Answers a function that sends requests with a token of its own. */
  async function newCaller(scope: Scope = 'plants:read') {
    const { headers } = await service.issue({ scopes: [scope] })
    return (path = '/plants', method = 'GET') => call(service.url, { method, path, headers })
  }

  return { clock, service, newCaller }
}

function toStatusAndRest({ status, headers }: Answer) {
  return [status, headers.get('ratelimit')]
}

describe('a rate limit', () => {
  it('lets exactly as many requests pass as it says, and tells how many are left', async (t) => {
    const { newCaller } = await startLimited(t)
    const ask = await newCaller()
    const answers = [await ask(), await ask(), await ask('/plants/404'), await ask(), await ask()]
    assert.deepEqual(answers.map(toStatusAndRest), [
      [200, '"token";r=2;t=1'],
      [200, '"token";r=1;t=1'],
      [404, '"token";r=0;t=1'],
      [429, '"token";r=0;t=1'],
      [429, '"token";r=0;t=1'],
    ])
    for (const { headers } of answers)
      assert.equal(headers.get('ratelimit-policy'), '"token";q=3;w=1')
    assert.equal(answers[3]?.headers.get('retry-after'), '1')
  })

  it('opens again when its window ends, and not before', async (t) => {
    const { clock, newCaller } = await startLimited(t)
    const ask = await newCaller()
    while ((await ask()).status !== 429);
    clock.advance(999)
    assert.equal((await ask()).status, 429)
    clock.advance(1)
    const answer = await ask()
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('ratelimit'), '"token";r=2;t=1')
  })

  it('counts requests without the scope, which get 403 even past the limit', async (t) => {
    const { newCaller } = await startLimited(t)
    const ask = await newCaller('plants:write')
    const answers = [await ask(), await ask(), await ask(), await ask()]
    assert.deepEqual(answers.map(toStatusAndRest), [
      [403, '"token";r=2;t=1'],
      [403, '"token";r=1;t=1'],
      [403, '"token";r=0;t=1'],
      [403, '"token";r=0;t=1'],
    ])
    assert.equal((await ask('/plants/1', 'DELETE')).status, 429)
  })

  it('counts each token by itself, and requests without a token not at all', async (t) => {
    const { service, newCaller } = await startLimited(t)
    const ask = await newCaller()
    while ((await ask()).status !== 429);
    const other = await newCaller()
    assert.equal((await other()).status, 200)
    assert.equal((await service.call({ path: '/plants' })).status, 200)
    for (let count = 0; count < 5; count++) {
      const anonymous = await call(service.url, { path: '/plants' })
      assert.equal(anonymous.status, 401)
      assert.equal(anonymous.headers.get('ratelimit'), undefined)
      const page = await call(service.url, { path: '/healthz' })
      assert.equal(page.status, 200)
      assert.equal(page.headers.get('ratelimit'), undefined)
    }
  })
})

describe('an idempotency key', () => {
  it('is refused when its token has used as many as it may', async (t) => {
    lowerLimit(t, 'keysOfToken', 2)
    const service = await startService('sqlite::memory:')
    const create = async (id: number, headers: Record<string, string> = {}) => {
      const key = { 'Idempotency-Key': `key-${id}` }
      const { status } = await service.create(`{"id":${id},"name":"x"}`, { ...key, ...headers })
      return status
    }
    for (const [id, status] of [200, 200, 503].entries()) assert.equal(await create(id), status)
    assert.equal((await service.call({ path: '/plants/2' })).status, 404)
    assert.equal(await create(3, (await service.issue()).headers), 200)
  })
})
