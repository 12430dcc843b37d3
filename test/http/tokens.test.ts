import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { engines } from '../support/engines.ts'
import { startService, type TestService } from '../support/service.ts'
import { call } from '../support/wire.ts'

for (const engine of engines) {
  describe(`tokens on ${engine.name}`, async () => {
    const url = await engine.newUrl()
    const service = await startService(url)
    const sameStore = await startService(url)
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

    it('are refused within a second of being revoked, in every process', async () => {
      const { token, record } = await issueToken(service.store, request)
      assert.equal(await numberFor(service, token), 40401)
      assert.equal(await numberFor(sameStore, token), 40401)
      await service.store.revokeToken(record.id, Date.now())
      const revokedAt = performance.now()
      for (const process of [service, sameStore]) {
        while ((await numberFor(process, token)) !== 40101) {
          assert.ok(performance.now() - revokedAt < 1_000, 'still accepted after a second')
        }
      }
    })

    it('are refused from the moment they expire, though they were verified before', async () => {
      const { token, record } = await issueToken(service.store, { ...request, lifetimeMs: 150 })
      const { expiresAt = 0 } = record
      let number = await numberFor(service, token)
      assert.equal(number, 40401)
      while (Date.now() < expiresAt) number = await numberFor(service, token)
      assert.equal(await numberFor(service, token), 40102)
    })

    it('cost no query while they are remembered', async () => {
      const store = await engine.open(await engine.newUrl())
      let queries = 0
      const counting: Store = {
        ...store,
        findToken: (hash) => {
          queries++
          return store.findToken(hash)
        },
      }
      const counted = await startService(url, { store: counting })
      const { token } = await issueToken(store, request)
      for (let round = 0; round < 50; round++) await numberFor(counted, token)
      assert.equal(queries, 1)
    })

    it('are not looked up when their checksum is wrong', async () => {
      const store = await engine.open(await engine.newUrl())
      const findToken = async () => assert.fail('the store was asked')
      const asked = await startService(url, { store: { ...store, findToken } })
      const { token } = await issueToken(store, request)
      assert.equal(
        await numberFor(asked, `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`),
        40101,
      )
    })

    it('note when they were last used, at the latest when the service stops', async () => {
      const place = await engine.newUrl()
      const stopping = await startService(place)
      const before = Date.now()
      const { token, record } = await issueToken(stopping.store, request)
      await numberFor(stopping, token)
      await stopping.close()
      const store = await engine.open(place)
      const [listed] = await store.listTokens()
      assert.equal(listed?.id, record.id)
      assert.ok((listed?.lastUsedAt ?? 0) >= before)
      await store.close()
    })

    it('are not to be found in what the service logs', async () => {
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

/** The error number of a get of an absent plant: 40401 for whoever may ask. */
async function numberFor(service: TestService, token: string): Promise<number> {
  const headers = { Authorization: `Bearer ${token}` }
  const { body } = await call(service.url, { path: '/plants/404', headers })
  return JSON.parse(body).error
}
