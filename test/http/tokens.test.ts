import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { stopClock } from '../support/clock.ts'
import { engines } from '../support/engines.ts'
import { lowerLimit } from '../support/limits.ts'
import { json, startService, type TestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { call, openSocket, toBytes } from '../support/wire.ts'

for (const engine of engines) {
  describe(`tokens on ${engine.name}`, () => {
    let service: TestService
    let sameStore: TestService
    before(async () => {
      const url = await engine.newUrl()
      service = await startService(url)
      sameStore = await startService(url)
    })
    const request = {
      name: 'test',
      scopes: ['plants:read', 'plants:write'],
      lifetimeMs: undefined,
    } as const

    it('work at once in every process that serves the store', async () => {
      const { token } = await issueToken(service.store, request)
      assert.equal(await numberFor(service, token), 40401)
      assert.equal(await numberFor(sameStore, token), 40401)
    })

    it('are refused in every process soon after they are revoked', async () => {
      const { token, record } = await issueToken(service.store, request)
      assert.equal(await numberFor(service, token), 40401)
      assert.equal(await numberFor(sameStore, token), 40401)
      await service.store.revokeToken(record.id, Date.now())
      for (const process of [service, sameStore]) {
        const isRefused = async () => (await numberFor(process, token)) === 40101
        await waitUntil(isRefused, 'the token is refused')
      }
    })

    it('are refused from the moment they expire, though they were verified before', async (t) => {
      t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
      const { token } = await issueToken(service.store, { ...request, lifetimeMs: 60_000 })
      assert.equal(await numberFor(service, token), 40401)
      t.mock.timers.tick(59_999)
      assert.equal(await numberFor(service, token), 40401)
      t.mock.timers.tick(1)
      assert.equal(await numberFor(service, token), 40102)
    })

    it('cost no query while they are remembered', async (t) => {
      stopClock(t)
      const store = await engine.open(await engine.newUrl())
      let queries = 0
      const counting: Store = {
        ...store,
        findToken: (hash) => {
          queries++
          return store.findToken(hash)
        },
      }
      const counted = await startService('sqlite::memory:', { store: counting })
      const { token } = await issueToken(store, request)
      for (let round = 0; round < 50; round++) await numberFor(counted, token)
      assert.equal(queries, 1)
    })

    it('are refused without a query when their checksum is wrong', async () => {
      const store = await engine.open(await engine.newUrl())
      const findToken = async () => assert.fail('the store was asked')
      const asked = await startService('sqlite::memory:', { store: { ...store, findToken } })
      const { token } = await issueToken(store, request)
      assert.equal(
        await numberFor(asked, `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`),
        40101,
      )
    })

    it('record their last use, at the latest when the service stops', async () => {
      const url = await engine.newUrl()
      const stopping = await startService(url)
      const startedAt = Date.now()
      const { token, record } = await issueToken(stopping.store, request)
      await numberFor(stopping, token)
      await stopping.close()
      const [listed] = await (await engine.open(url)).listTokens()
      assert.equal(listed?.id, record.id)
      assert.ok((listed?.lastUsedAt ?? 0) >= startedAt)
    })

    it('hold up nothing when a client leaves while its token is looked up', async (t) => {
      lowerLimit(t, 'underWay', 1)
      const store = await engine.open(await engine.newUrl())
      const { token } = await issueToken(store, request)
      const [asked, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const waiting = await startService(await engine.newUrl(), {
        env: { LOG_LEVEL: 'debug' },
        store: {
          ...store,
          async findToken(hash) {
            asked.resolve()
            await gone.promise
            return store.findToken(hash)
          },
        },
      })
      const socket = openSocket(waiting.url)
      const headers = { ...json, Authorization: `Bearer ${token}` }
      socket.write(
        toBytes({ method: 'POST', path: '/plants', headers, body: '{"id":' }).subarray(0, -1),
      )
      await asked.promise
      socket.destroy()
      const left = () => waiting.log.some((line) => line.includes('broken off'))
      await waitUntil(left, 'the service knows')
      gone.resolve()
      // It would wait for the end of that request.
      assert.equal(await numberFor(waiting, token), 40401)
    })

    it('are not in the log of the service', async () => {
      const talkative = await startService(await engine.newUrl(), { env: { LOG_LEVEL: 'trace' } })
      const { token } = await issueToken(talkative.store, request)
      await call(talkative.url, {
        method: 'POST',
        path: `/plants?token=${token}`,
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        body: '{"id":1,"name":"the name of a plant"}',
      })
      await numberFor(talkative, token)
      await talkative.close()
      assert.ok(talkative.log.some((line) => line.includes('answered')))
      assert.deepEqual(
        talkative.log.filter((line) => line.includes(token) || line.includes('the name of')),
        [],
      )
    })
  })
}

/** The error number for a get of an absent plant: 40401 with a valid token. */
async function numberFor(service: TestService, token: string): Promise<number> {
  const headers = { Authorization: `Bearer ${token}` }
  const { body } = await call(service.url, { path: '/plants/404', headers })
  return JSON.parse(body).error
}
