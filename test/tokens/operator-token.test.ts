import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { engines } from '../support/engines.ts'
import { startService } from '../support/service.ts'

const tokens = ['the-first-token-of-the-operator', 'another-token-of-the-operator']

for (const engine of engines) {
  describe(`PLANT_STORE_TOKEN on ${engine.name}`, () => {
    it('is another token with another value, so that keys do not carry over', async () => {
      const url = await engine.newUrl()
      const services = await Promise.all(
        tokens.map((token) => startService(url, { env: { PLANT_STORE_TOKEN: token } })),
      )
      const create = (index: number, id: number) =>
        services[index]?.create(`{"id":${id},"name":"a"}`, {
          Authorization: `Bearer ${tokens[index]}`,
          'Idempotency-Key': 'the-same-key',
        })
      assert.equal((await create(0, 1))?.status, 200)
      const other = await create(1, 2)
      assert.equal(other?.status, 200)
      assert.equal(other?.headers.get('idempotency-replayed'), undefined)
      const again = await create(0, 1)
      assert.equal(again?.status, 200)
      assert.equal(again?.headers.get('idempotency-replayed'), 'true')
    })
  })
}
