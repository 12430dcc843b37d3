import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { issueToken } from '../../src/tokens/issue.ts'
import { startService } from '../support/service.ts'
import { call } from '../support/wire.ts'

describe('a rate limit', async () => {
  const service = await startService('sqlite::memory:', { env: { RATE_LIMIT: '3/s' } })
  const request = { name: 'one', scopes: ['plants:read'] as const, lifetimeMs: undefined }
  const { token } = await issueToken(service.store, request)
  const ask = (path = '/plants') =>
    call(service.url, { path, headers: { Authorization: `Bearer ${token}` } })

  it('lets as many pass as it says, tells what is left, and opens again', async () => {
    // Begins with a window of its own, in which nobody has asked yet.
    while ((await ask()).headers.get('ratelimit') !== '"token";r=2;t=1');
    assert.equal((await ask()).headers.get('ratelimit'), '"token";r=1;t=1')
    assert.equal((await ask('/plants/404')).headers.get('ratelimit'), '"token";r=0;t=1')
    const refused = await ask()
    assert.equal(refused.status, 429)
    assert.equal(refused.headers.get('retry-after'), '1')
    assert.equal(refused.headers.get('ratelimit-policy'), '"token";q=3;w=1')
    while ((await ask()).status !== 200);
  })

  it('counts each token by itself, and who has none not at all', async () => {
    while ((await ask()).status !== 429);
    assert.equal((await service.call({ path: '/plants' })).status, 200)
    const nobody = await call(service.url, { path: '/plants' })
    assert.equal(nobody.status, 401)
    assert.equal(nobody.headers.get('ratelimit'), undefined)
    const page = await call(service.url, { path: '/healthz' })
    assert.equal(page.headers.get('ratelimit'), undefined)
  })

  it('is not there unless it was asked for', async () => {
    const free = await startService('sqlite::memory:')
    const answer = await free.call({ path: '/plants' })
    assert.equal(answer.headers.get('ratelimit'), undefined)
    assert.equal(answer.headers.get('ratelimit-policy'), undefined)
  })
})
