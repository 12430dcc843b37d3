import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startWithoutStandby } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { startService } from '../support/service.ts'
import { openPostgresStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'

describe('a create that no standby has confirmed in time', () => {
  it('is not shown yet, and is stored once by a retry, as its answer says', async () => {
    const { url, awaiting, forgetStandby, stop } = await startWithoutStandby()
    releaseAfterTest(stop)
    await openPostgresStore(url)
    const store = await openPostgresStore(awaiting, { answerTimeoutMs: 2_000 })
    const service = await startService(url, { store })
    const create = () => service.create('{"id":7,"name":"Aloe"}', { 'Idempotency-Key': 'one' })
    const find = () => service.call({ path: '/plants/7' })
    const { status, body } = await create()
    assert.equal(status, 504)
    assert.match(JSON.parse(body).message, /a GET may not show it yet\. Retry with the same id,/)
    assert.equal((await find()).status, 404)
    await forgetStandby()
    await waitUntil(async () => (await find()).status === 200, 'the plant is shown')
    const again = await create()
    assert.equal(again.status, 200)
    assert.equal(again.headers.get('idempotency-replayed'), 'true')
  })
})
