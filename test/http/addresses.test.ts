import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startService } from '../support/service.ts'
import { exchange } from '../support/wire.ts'

const memory = 'sqlite::memory:'

describe('the URLs in the answers of the service', () => {
  const cases = [
    ['https://plants.example', 'https://plants.example'],
    ['https://plants.example/', 'https://plants.example'],
    ['https://plants.example:8443/api/v1/', 'https://plants.example:8443/api/v1'],
  ]
  for (const [publicUrl = '', base] of cases) {
    it(`start with PUBLIC_URL ${publicUrl}`, async () => {
      const service = await startService(memory, { env: { PUBLIC_URL: publicUrl } })
      const { headers } = await service.create('{"id":1,"name":"x"}')
      assert.equal(headers.get('location'), `${base}/plants/1`)
      const { body } = await service.call({ path: '/openapi.json' })
      assert.equal(JSON.parse(body).servers[0].url, base)
    })
  }

  it('are relative without PUBLIC_URL, whatever host the request names', async () => {
    const service = await startService(memory)
    for (const [id, host] of ['plants.example', '[::1]:8080'].entries()) {
      const { headers } = await service.create(`{"id":${id},"name":"x"}`, { Host: host })
      assert.equal(headers.get('location'), `/plants/${id}`)
    }
    const { headers } = await service.call({ path: '/plants?limit=1' })
    assert.equal(headers.get('link'), '</plants?limit=1&after=0>; rel="next"')
  })

  it('are relative in the document without PUBLIC_URL, for browsers and programs alike', async () => {
    const service = await startService(memory)
    const requests = [
      'GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n',
      'GET /openapi.json HTTP/1.1\r\nHost: plants.example\r\nUser-Agent: Mozilla/5.0\r\n\r\n',
      'GET http://plants.example/openapi.json HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n',
      'GET /openapi.json HTTP/1.0\r\n\r\n',
    ]
    for (const request of requests) {
      const [answer] = await exchange(service.url, Buffer.from(request))
      assert.equal(answer?.status, 200)
      assert.equal(JSON.parse(answer.body).servers[0].url, '/')
    }
  })
})
