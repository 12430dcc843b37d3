import assert from 'node:assert/strict'
import { text } from 'node:stream/consumers'
import { before, describe, it, type TestContext } from 'node:test'
import { engines } from '../support/engines.ts'
import { lowerLimit } from '../support/limits.ts'
import { releaseAfterTest } from '../support/release.ts'
import { numberFor, startService, type TestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'
import { post } from './scenarios/scenario.ts'

for (const engine of engines) {
  describe(`tokens on ${engine.name}`, () => {
    let service: TestService
    let sameStore: TestService
    before(async () => {
      const url = await engine.newUrl()
      service = await startService(url)
      sameStore = await startService(url)
    })

    it('are refused in every process soon after they are revoked', async () => {
      const { token, record } = await service.issue()
      assert.equal(await numberFor(service, token), 40401)
      assert.equal(await numberFor(sameStore, token), 40401)
      await service.store.revokeToken(record.id, Date.now())
      for (const process of [service, sameStore]) {
        const isRefused = async () => (await numberFor(process, token)) === 40101
        await waitUntil(isRefused, 'the token is refused')
      }
    })

    it('write nothing, and end their export, if they are revoked meanwhile', async () => {
      const { record, headers: authorization } = await service.issue()
      const name = 'x'.repeat(500_000)
      for (let id = 1n; id <= 30n; id++) await service.store.createPlant({ id, name })
      const headers = { ...authorization, Connection: 'close' }
      const body = '{"id":-1,"name":"x"}'
      const socket = openSocket(service.url)
      const received = text(socket)
      socket.write(toBytes(post(body, headers)).subarray(0, -5))
      const exported = await fetch(`${service.url}/plants.ndjson`, {
        headers: { ...authorization, 'Accept-Encoding': 'identity' },
      })
      assert.equal(exported.status, 200)
      await service.store.revokeToken(record.id, Date.now())
      // It is checked every 50 ms: a client could read all of the export before.
      const exporting = 'plant_store_http_requests_in_flight{operation="exportPlantsAsNdjson"}'
      await waitUntil(async () => (await service.sample(exporting)) === 0, 'the export has ended')
      socket.write(body.slice(-5))
      assert.match(await received, /^HTTP\/1\.1 401[\s\S]*40101/)
      assert.equal(await service.store.getPlant(-1n), undefined)
      await assert.rejects(exported.text())
    })

    it('are refused from the moment they expire, though they were verified before', async (t) => {
      t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
      const { token } = await service.issue({ lifetimeMs: 60_000 })
      assert.equal(await numberFor(service, token), 40401)
      t.mock.timers.tick(59_999)
      assert.equal(await numberFor(service, token), 40401)
      t.mock.timers.tick(1)
      assert.equal(await numberFor(service, token), 40102)
    })

    it('are refused without a query when their checksum is wrong', async () => {
      const store = await engine.open(await engine.newUrl())
      const findToken = async () => assert.fail('the store was asked')
      const asked = await startService('sqlite::memory:', { store: { ...store, findToken } })
      const { token } = await asked.issue()
      const wrong = token.slice(0, -1) + (token.endsWith('0') ? '1' : '0')
      assert.equal(await numberFor(asked, wrong), 40101)
    })

    it('record their last use, at the latest when the service stops', async () => {
      const url = await engine.newUrl()
      const stopping = await startService(url)
      const startedAt = Date.now()
      const { token, record } = await stopping.issue()
      await numberFor(stopping, token)
      await stopping.close()
      const [listed] = await (await engine.open(url)).listTokens()
      assert.equal(listed?.id, record.id)
      assert.ok((listed?.lastUsedAt ?? 0) >= startedAt)
    })

    it('are others where the operator sets another one, so that keys do not carry over', async () => {
      const url = await engine.newUrl()
      const tokens = ['the-first-token-of-the-operator', 'another-token-of-the-operator']
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

    /** A service with room for one request, whose store is asked for a token and then waits. */
    async function startWaiting(test: TestContext) {
      lowerLimit(test, 'underWay', 1)
      const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      releaseAfterTest(answer.resolve)
      const url = await engine.newUrl()
      const store = await engine.open(url)
      const findToken: typeof store.findToken = async (hash) => {
        asked.resolve()
        await answer.promise
        return store.findToken(hash)
      }
      const options = { env: { LOG_LEVEL: 'debug' }, store: { ...store, findToken } }
      const waiting = await startService(url, options)
      return { waiting, asked: asked.promise, answer: answer.resolve }
    }

    it('that are looked up do not hold up the health, whatever query it has', async (t) => {
      const { waiting, asked, answer } = await startWaiting(t)
      const { headers } = await waiting.issue()
      const lookedUp = waiting.call({ path: '/plants/1', headers })
      await asked
      for (const path of ['/healthz?x=1', '/readyz?']) {
        assert.equal((await waiting.call({ path })).status, 200)
      }
      answer()
      assert.equal((await lookedUp).status, 404)
    })

    it('hold up nothing when a client leaves while its token is looked up', async (t) => {
      const { waiting, asked, answer } = await startWaiting(t)
      const socket = openSocket(waiting.url)
      const { token, headers } = await waiting.issue()
      socket.write(toBytes(post('{"id":', headers)).subarray(0, -1))
      await asked
      socket.destroy()
      const left = () => waiting.log.some((line) => line.includes('broken off'))
      await waitUntil(left, 'the service knows')
      answer()
      // It would wait for the end of that request.
      assert.equal(await numberFor(waiting, token), 40401)
    })
  })
}
