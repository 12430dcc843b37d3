import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { authorized, startService } from '../support/service.ts'
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

  it('start with the host of the request without PUBLIC_URL', async () => {
    const service = await startService(memory)
    const { headers } = await service.create('{"id":1,"name":"x"}', { Host: '[::1]:8080' })
    assert.equal(headers.get('location'), 'http://[::1]:8080/plants/1')
  })

  it('start with the address of the connection when HTTP/1.0 names no host', async () => {
    const service = await startService(memory)
    const body = '{"id":1,"name":"x"}'
    const lines = [
      'POST /plants HTTP/1.0',
      `Authorization: ${authorized.Authorization}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ]
    const [answer] = await exchange(
      service.url,
      Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`),
    )
    assert.equal(answer?.headers.get('location'), `${service.url}/plants/1`)
  })
})
