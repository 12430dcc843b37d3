import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { sqlite } from '../support/engines.ts'
import { json, startService } from '../support/service.ts'
import { exchange, openSocket, toBytes } from '../support/wire.ts'

const memory = 'sqlite::memory:'

function requests(operation: string, status: number, error: number | 'none' = 'none'): string {
  const labels = `operation="${operation}",status="${status}",error="${error}"`
  return `plant_store_http_requests_total{${labels}}`
}

const service = await startService(memory)
const atStart = await service.scrape()

describe('the metrics of requests', () => {
  /** How much each sample has grown since the service started. */
  async function grown(): Promise<(name: string) => number> {
    const now = await service.scrape()
    return (name) => (now.get(name) ?? 0) - (atStart.get(name) ?? 0)
  }

  it('count answers by operation, status and error number', async () => {
    await service.create('{"id":1,"name":"x"}')
    await service.create('{"id":1,"name":"x"}')
    await service.create('{"id":2,"name":"x"}')
    await service.create('no JSON')
    await service.put(3, { name: 'y' })
    await service.call({ method: 'HEAD', path: '/plants/1' })
    await service.call({ path: '/plants/404' })
    await service.call({ path: '/nothing' })
    await service.call({ method: 'DELETE', path: '/plants' })
    await service.call({ path: '/healthz' })
    await exchange(service.url, Buffer.from('no request\r\n\r\n'))
    const count = await grown()
    assert.equal(count(requests('createPlant', 200)), 2)
    assert.equal(count(requests('createPlant', 409, 40900)), 1)
    assert.equal(count(requests('createPlant', 400, 40001)), 1)
    assert.equal(count(requests('replacePlant', 201)), 1)
    assert.equal(count(requests('getPlant', 200)), 1)
    assert.equal(count(requests('getPlant', 404, 40401)), 1)
    assert.equal(count(requests('none', 404, 40400)), 1)
    assert.equal(count(requests('none', 405, 40500)), 1)
    assert.equal(count(requests('none', 400, 40000)), 1)
    assert.equal(count(requests('getHealth', 200)), 1)
    // A scrape is counted when it is answered.
    assert.equal(count(requests('getMetrics', 200)), 1)
  })

  it('have histograms of durations and sizes that agree with the count', async () => {
    const name = 'x'.repeat(5_000)
    await service.create(`{"id":10,"name":"${name}"}`)
    await service.call({ path: '/plants/10' })
    // Its answer only says how large the body would be.
    await service.call({ method: 'HEAD', path: '/plants/10' })
    const count = await grown()
    const created = '{operation="createPlant"}'
    const answers = [...(await service.scrape())]
      .filter(([name]) =>
        name.startsWith('plant_store_http_requests_total{operation="createPlant"'),
      )
      .reduce((sum, [, value]) => sum + value, 0)
    for (const kind of ['request_duration_seconds', 'request_size_bytes', 'response_size_bytes']) {
      const histogram = `plant_store_http_${kind}`
      assert.equal(count(`${histogram}_count${created}`), answers)
      assert.equal(count(`${histogram}_bucket{operation="createPlant",le="+Inf"}`), answers)
    }
    const got = 'plant_store_http_response_size_bytes_bucket{operation="getPlant",le='
    assert.equal(count(`${got}"16384"}`) - count(`${got}"4096"}`), 1)
    assert.ok(count(`plant_store_http_request_duration_seconds_sum${created}`) > 0)
  })

  it('count broken bytes once, and a broken body under its operation', async () => {
    const earlier = await service.scrape()
    for (const head of [
      '',
      toBytes({
        method: 'POST',
        path: '/plants',
        headers: { ...json, 'Transfer-Encoding': 'chunked', Expect: '100-continue' },
      }),
    ]) {
      const socket = openSocket(service.url)
      socket.write(head)
      // The body is being read.
      if (head !== '') await once(socket, 'data')
      socket.write('ZZ\r\n')
      await once(socket, 'data')
      socket.end('ZZ\r\n'.repeat(3))
      await once(socket, 'close')
    }
    const now = await service.scrape()
    for (const operation of ['none', 'createPlant']) {
      const refused = requests(operation, 400, 40000)
      assert.equal((now.get(refused) ?? 0) - (earlier.get(refused) ?? 0), 1, operation)
    }
  })
})

describe('the metrics of refusals', () => {
  it('name the rate limit', async () => {
    const service = await startService(memory, { env: { RATE_LIMIT: '2/h' } })
    const { headers } = await service.issue()
    for (let count = 0; count < 5; count++) await service.call({ path: '/plants', headers })
    const samples = await service.scrape()
    assert.equal(samples.get('plant_store_refusals_total{reason="rate_limit"}'), 3)
    assert.equal(samples.get('plant_store_tokens_in_use'), 2)
  })

  it('name a full write queue, and are served beside it', async () => {
    const { store } = await sqlite.openWithFault('queue full')
    const service = await startService(memory, { store })
    assert.equal((await service.create('{"id":7,"name":"x"}')).status, 503)
    const samples = await service.scrape()
    assert.equal(samples.get('plant_store_refusals_total{reason="write_queue"}'), 1)
    assert.equal(samples.get('plant_store_refusals_total{reason="rate_limit"}'), 0)
    assert.equal(samples.get(requests('createPlant', 503, 50300)), 1)
  })
})
