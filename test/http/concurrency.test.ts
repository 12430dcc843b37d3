import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { engines } from '../support/engines.ts'
import { startService } from '../support/service.ts'

for (const engine of engines) {
  describe(`simultaneous creates on ${engine.name}`, () => {
    it('have one winner of 100 with the same id, and its plant is stored', async () => {
      const service = await startService(await engine.newUrl())
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, index) => service.create(`{"id":1,"name":"${index}"}`)),
      )
      const winners = answers.filter(({ status }) => status === 200)
      assert.equal(winners.length, 1)
      assert.equal(answers.filter(({ status }) => status === 409).length, 99)
      const { body } = await service.call({ path: '/plants/1' })
      assert.equal(JSON.parse(body).name, JSON.parse(winners[0]?.body ?? '').name)
    })

    it('have one winner for each id, though two services share the store', async () => {
      const url = await engine.newUrl()
      const services = [await startService(url), await startService(url)]
      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, index) =>
          services[index % 2]?.create(`{"id":${index >> 1},"name":"${index}"}`),
        ),
      )
      const winners = answers.filter((answer) => answer?.status === 200)
      assert.equal(winners.length, 100)
      assert.equal(answers.filter((answer) => answer?.status === 409).length, 100)
    })

    it('are refused at once when the queue is full, and only these are not stored', async () => {
      const url = await engine.newUrl()
      const bounds = { queueItems: 20, batchItems: 5 }
      const service = await startService(url, { store: await engine.open(url, bounds) })
      const release = await engine.block(url)
      const creates = Array.from({ length: 100 }, (_, id) =>
        service.create(`{"id":${id},"name":"x"}`),
      )
      const first = await Promise.race(creates)
      assert.equal(first.status, 503)
      assert.equal(first.headers.get('retry-after'), '1')
      assert.equal((await service.call({ path: '/healthz' })).status, 200)
      await release()
      const answers = await Promise.all(creates)
      const stored = answers.filter(({ status }) => status === 200)
      assert.ok(stored.length >= 20, `${stored.length} were stored`)
      for (const [id, { status, body }] of answers.entries()) {
        if (status !== 200) assert.equal(JSON.parse(body).error, 50300)
        const found = await service.call({ path: `/plants/${id}` })
        assert.equal(found.status, status === 200 ? 200 : 404)
      }
    })
  })
}
