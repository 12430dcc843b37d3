import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { limits } from '../../src/contract/limits.ts'
import { newFolder } from '../support/folder.ts'
import { lowerLimit } from '../support/limits.ts'
import { authorized, startService, type TestService } from '../support/service.ts'
import { openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'

async function openSockets(service: TestService, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => openSocket(service.url))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  return sockets
}

/** Starts a service with a thousand plants, which are dear to list, and another token. */
async function startDear() {
  const store = openSqliteStore(join(newFolder(), 'plants.db'))
  const service = await startService('sqlite::memory:', { store })
  const name = 'x'.repeat(900)
  const plants = Array.from({ length: 1_000 }, (_, id) => ({ id: BigInt(id), name }))
  await store.importPlants(plants, 'keep')
  const { headers: other } = await service.issue()
  await service.call({ path: '/plants/1', headers: other })
  await service.call({ path: '/plants/1' })
  return { service, other }
}

describe('clients that ask for much', () => {
  /**
   * Sends a dear request on each of 100 connections, and then one on another connection, which
   * must not wait for most of them.
   */
  async function requireTurn(dear: TestService, toDear: (at: number) => Buffer, late: Buffer) {
    const sockets = await openSockets(dear, 100)
    const [other] = (await openSockets(dear, 1)) as [Socket]
    let answered = 0
    for (const socket of sockets) socket.once('data', () => answered++)
    // The answer shows that all are accepted. The document is made when it is first requested.
    await dear.call({ path: '/openapi.json' })
    for (const [at, socket] of sockets.entries()) socket.write(toDear(at))
    other.write(late)
    const [answer] = await once(other.setEncoding('latin1'), 'data')
    assert.match(answer, /^HTTP\/1\.1 200 /)
    assert.ok(answered < sockets.length / 4, `${answered} requests came first`)
    await waitUntil(() => answered === sockets.length, 'every request has its answer')
  }

  for (const [title, path, asked] of [
    ['of another token', '/plants/1', 'limit=1000'],
    ['for the health', '/healthz', 'limit=1000'],
    ['of another token', '/plants/1', 'name=y'],
    ['that searches, of another token,', '/plants?name=y', 'name=y'],
  ] as const) {
    it(`let a request ${title} pass, however many of theirs for ${asked} wait`, async () => {
      const { service: dear, other } = await startDear()
      const toDear = (at: number) => {
        const method = at % 2 === 0 ? 'GET' : 'HEAD'
        return toBytes({ method, path: `/plants?${asked}`, headers: authorized })
      }
      await requireTurn(dear, toDear, toBytes({ path, headers: other }))
    })
  }

  /** Starts a service whose pages wait until they are let go, as those of PostgreSQL may. */
  async function startGated() {
    const store = openSqliteStore(join(newFolder(), 'plants.db'))
    const gate = Promise.withResolvers<void>()
    const state = { running: 0, letGo: gate.resolve }
    async function wait<Value>(run: () => Promise<Value>): Promise<Value> {
      state.running++
      await gate.promise
      state.running--
      return run()
    }
    const gated = await startService('sqlite::memory:', {
      store: {
        ...store,
        listPlants: (query) => wait(() => store.listPlants(query)),
        readJournal: (...page) => wait(() => store.readJournal(...page)),
      },
    })
    return { gated, state, other: (await gated.issue()).headers }
  }

  for (const path of ['/plants', '/plants?name=x', '/%70lants']) {
    it(`have so many requests for ${path} under way, and leave the store to others`, async () => {
      const { gated, state, other } = await startGated()
      const ask = (headers = authorized) => gated.call({ path, headers })
      await gated.call({ path: '/plants/1' })
      await gated.call({ path: '/plants/1', headers: other })
      const atOnce = limits.underWay / limits.pageWeight
      // The text of the header is not the caller.
      const lower = { Authorization: authorized.Authorization.replace('Bearer', 'bearer') }
      const own = Array.from({ length: 3 * atOnce }, (_, at) => ask(at % 2 ? authorized : lower))
      await waitUntil(() => state.running === atOnce, 'the first are under way')
      const another = ask(other)
      await waitUntil(() => state.running === atOnce + 1, 'that of the other token is, too')
      assert.equal((await gated.call({ path: '/healthz' })).status, 200)
      state.letGo()
      const statuses = (await Promise.all([...own, another])).map(({ status }) => status)
      assert.deepEqual(new Set(statuses), new Set([200]))
    })
  }

  it('are refused with 503 after they waited for too long behind their own requests', async (t) => {
    const { gated, state } = await startGated()
    await gated.call({ path: '/plants/1' })
    const atOnce = limits.underWay / limits.pageWeight
    const own = Array.from({ length: atOnce + 3 }, () => gated.call({ path: '/plants' }))
    await waitUntil(() => state.running === atOnce, 'the first are read')
    // The answer shows that the others have come. From here on, any wait is too long.
    assert.equal((await gated.call({ path: '/healthz' })).status, 200)
    lowerLimit(t, 'gateWaitMs', 0)
    state.letGo()
    const answers = await Promise.all(own)
    const refused = answers.filter(({ status }) => status === 503)
    assert.deepEqual(
      refused.map(({ body, headers }) => [JSON.parse(body).error, headers.get('retry-after')]),
      Array(3).fill([50300, '1']),
    )
  })

  for (const [title, request] of [
    ['creates without a token', { method: 'POST', path: '/plants', body: '{}' }],
    ['requests with invented tokens', { path: '/plants/1', headers: 'invented' }],
    ['preflights', { method: 'OPTIONS', path: '/plants' }],
  ] as const) {
    it(`do not hold up a token or the health by ${title}, sent again and again`, async (t) => {
      // A turn begins one request, so that the count does not depend on how fast they are.
      lowerLimit(t, 'turnMs', 0)
      const { service: dear, other } = await startDear()
      const sockets = await openSockets(dear, 500)
      let answered = 0
      let isEnding = false
      for (const [at, socket] of sockets.entries()) {
        const headers = 'headers' in request ? { Authorization: `Bearer invented-${at}` } : {}
        const bytes = toBytes({ ...request, headers })
        socket.on('data', () => {
          answered++
          if (!isEnding) socket.write(bytes)
        })
        socket.write(bytes)
      }
      await waitUntil(() => answered > sockets.length, 'the others are under way')
      const [victim] = (await openSockets(dear, 1)) as [Socket]
      const before = answered
      const own = 10
      for (let sent = 0; sent < own; sent++) {
        const isHealth = sent % 2 === 0
        victim.write(
          toBytes(isHealth ? { path: '/healthz' } : { path: '/plants/1', headers: other }),
        )
        const [answer] = await once(victim, 'data')
        assert.match(String(answer), /^HTTP\/1\.1 200 /)
      }
      isEnding = true
      // By arrival, each would wait for one request of each connection at least.
      const first = (answered - before) / own
      assert.ok(first < sockets.length / 10, `${first} requests came first`)
    })
  }
})
