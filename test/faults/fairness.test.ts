import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '../../src/contract/limits.ts'
import { scopes } from '../../src/contract/scopes.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { newFolder } from '../support/folder.ts'
import { lowerLimit } from '../support/limits.ts'
import {
  authorized,
  json,
  operatorToken,
  startService,
  type TestService,
} from '../support/service.ts'
import { openSqliteStore } from '../support/stores.ts'
import { startUpload, toLines } from '../support/upload.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'

const tiny = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'
const last = 'GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
const statusesOf = (received: string) => received.match(/(?<=HTTP\/1\.1 )\d+/g) ?? []

/** A create of this many bytes that is refused with 400 when it is complete: it has no id. */
function toLargeCreate(bytes: number): Buffer {
  const body = `{"name":"${'x'.repeat(bytes - 11)}"}`
  const headers = { ...json, Connection: 'close' }
  return toBytes({ method: 'POST', path: '/plants', headers, body })
}

async function openSockets(service: TestService, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => openSocket(service.url))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  return sockets
}

/** Sends the same bytes on every connection, and waits until the service has read them. */
async function sendAll(service: TestService, sockets: Socket[], bytes: Buffer): Promise<void> {
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.write(bytes, resolve))))
  // Answers on another connection show that what was sent before is read.
  for (let turn = 0; turn < 20; turn++) await service.call({ path: '/healthz' })
}

/** Starts a service with a thousand plants, which are dear to list, and another token. */
async function startDear() {
  const store = openSqliteStore(join(newFolder(), 'plants.db'))
  const service = await startService('sqlite::memory:', { store })
  const name = 'x'.repeat(900)
  const plants = Array.from({ length: 1_000 }, (_, id) => ({ id: BigInt(id), name }))
  await store.importPlants(plants, 'keep')
  const { token } = await issueToken(store, { name: 'other', scopes, lifetimeMs: undefined })
  const other = { Authorization: `Bearer ${token}` }
  await service.call({ path: '/plants/1', headers: other })
  await service.call({ path: '/plants/1' })
  return { service, other }
}

describe('clients that ask for much', () => {
  let service: TestService
  before(async () => {
    service = await startService('sqlite::memory:')
  })

  it('let others have a turn between their large bodies', async () => {
    const create = toLargeCreate(100_000)
    const sockets = await openSockets(service, 8)
    const [other] = await openSockets(service, 1)
    let answered = 0
    for (const socket of sockets) socket.once('data', () => answered++)
    await sendAll(service, sockets, create.subarray(0, -1))
    for (const socket of sockets) socket.write(create.subarray(-1))
    other?.write(last)
    await once(other as Socket, 'data')
    assert.ok(answered < sockets.length, 'a small request waits for every large body')
    await waitUntil(() => answered === sockets.length, 'every large body has its answer')
  })

  it('let a large body of another token pass, however many of theirs wait', async () => {
    const { service: own, other } = await startDear()
    const create = toLargeCreate(1_000_000)
    const sockets = await openSockets(own, 20)
    const [late] = (await openSockets(own, 1)) as [Socket]
    let answered = 0
    for (const socket of sockets) socket.once('data', () => answered++)
    await sendAll(own, sockets, create.subarray(0, -1))
    const headers = { ...json, ...other }
    const body = `{"name":"${'x'.repeat(100_000)}"}`
    const another = toBytes({ method: 'POST', path: '/plants', headers, body })
    await sendAll(own, [late], another.subarray(0, -1))
    for (const socket of sockets) socket.write(create.subarray(-1))
    late.write(another.subarray(-1))
    const [answer] = await once(late.setEncoding('latin1'), 'data')
    assert.match(answer, /^HTTP\/1\.1 400 /)
    assert.ok(answered < sockets.length / 2, `${answered} bodies were judged first`)
    await waitUntil(() => answered === sockets.length, 'every large body has its answer')
  })

  it('let others have a turn between large bodies that nobody reads', async () => {
    const refused = toBytes({ method: 'POST', path: '/plants', body: Buffer.alloc(150_000) })
    const next = toBytes({ path: '/plants/1', headers: { Connection: 'close' } })
    const sockets = await openSockets(service, 100)
    const [other] = (await openSockets(service, 1)) as [Socket]
    let ended = 0
    for (const socket of sockets) socket.resume().once('end', () => ended++)
    // The answer on a later connection shows that these are accepted. Their bytes come at once.
    await service.call({ path: '/healthz' })
    for (const socket of sockets) socket.write(Buffer.concat([refused, next]))
    other.write(next)
    await once(other, 'data')
    assert.ok(ended < sockets.length / 2, `${ended} bodies were read first`)
    await waitUntil(() => ended === sockets.length, 'every body is read')
  })

  it('let others have a turn between their pipelined requests', async () => {
    const [socket, other] = (await openSockets(service, 2)) as [Socket, Socket]
    const count = 400
    let received = ''
    socket.setEncoding('latin1').on('data', (part: string) => {
      received += part
    })
    // Both are accepted by now.
    await service.call({ path: '/healthz' })
    socket.write(tiny.repeat(count) + last)
    other.write(last)
    await once(other, 'data')
    assert.ok(statusesOf(received).length < count, 'a request waits for all that were pipelined')
    await once(socket, 'close')
    assert.equal(statusesOf(received).length, count + 1)
  })

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

  it('share one turn, however they spell the header of their token', async () => {
    const { service: dear, other } = await startDear()
    const toDear = (at: number) => {
      const scheme = at % 2 === 0 ? 'Bearer' : 'bearer'
      const Authorization = `${scheme} ${' \t'.repeat(at / 2)}${operatorToken}`
      return toBytes({ path: '/plants?limit=1000', headers: { Authorization } })
    }
    await requireTurn(dear, toDear, toBytes({ path: '/plants/1', headers: other }))
  })

  it('let a request without a token pass, however they spell the path of theirs', async () => {
    const { service: dear } = await startDear()
    const toDear = (at: number) => {
      const path = at % 2 === 0 ? '/%70lants?limit=1000' : 'HTTP://plants.test/plants?limit=1000'
      return toBytes({ path, headers: authorized })
    }
    await requireTurn(dear, toDear, toBytes({ path: '/openapi.json' }))
  })

  it('import fewer plants at a time while other requests come', async () => {
    const store = openSqliteStore(join(newFolder(), 'plants.db'))
    let batches = 0
    const importPlants: typeof store.importPlants = (...batch) => {
      batches++
      return store.importPlants(...batch)
    }
    const own = await startService('sqlite::memory:', { store: { ...store, importPlants } })
    const countBatches = async (first: number, meanwhile: () => Promise<unknown>) => {
      const upload = startUpload(own.url, 'ndjson')
      const before = batches
      for (let part = 0; part < 4; part++) {
        await meanwhile()
        await upload.send(toLines(first + part * 500, 500))
      }
      upload.end()
      assert.equal((await upload.answer).stored, 2_000)
      return batches - before
    }
    const alone = await countBatches(0, async () => {})
    const beside = await countBatches(2_000, () => own.call({ path: '/plants/1' }))
    assert.ok(beside > 2 * alone, `${beside} batches beside others, ${alone} alone`)
  })

  /** Starts a service whose lists wait until they are let go, as those of PostgreSQL may. */
  async function startGated() {
    const store = openSqliteStore(join(newFolder(), 'plants.db'))
    const gate = Promise.withResolvers<void>()
    const state = { running: 0, letGo: gate.resolve }
    const listPlants: typeof store.listPlants = async (query) => {
      state.running++
      await gate.promise
      state.running--
      return store.listPlants(query)
    }
    const gated = await startService('sqlite::memory:', { store: { ...store, listPlants } })
    const { token } = await issueToken(store, { name: 'other', scopes, lifetimeMs: undefined })
    return { gated, state, other: { Authorization: `Bearer ${token}` } }
  }

  it('run one search at a time, and leave the store to the searches of others', async () => {
    const { gated, state, other } = await startGated()
    const search = (headers = authorized) => gated.call({ path: '/plants?name=x', headers })
    const own = Array.from({ length: limits.searchesOfToken + 1 }, () => search())
    // All others wait.
    const first = await Promise.race(own)
    assert.deepEqual([first.status, JSON.parse(first.body).error, state.running], [503, 50300, 1])
    const another = search(other)
    await waitUntil(() => state.running === 2, 'the search of the other token runs')
    state.letGo()
    const statuses = (await Promise.all([...own, another])).map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 200).length, own.length)
    assert.equal((await search()).status, 200)
  })

  it('read a few pages at a time, and leave the store to the pages of others', async (t) => {
    lowerLimit(t, 'pagesOfToken', 40)
    const { gated, state, other } = await startGated()
    const list = (headers = authorized) => gated.call({ path: '/plants', headers })
    const own = Array.from({ length: limits.pagesOfToken + 1 }, () => list())
    const first = await Promise.race(own)
    assert.deepEqual([first.status, JSON.parse(first.body).error], [503, 50300])
    assert.equal(state.running, limits.pagesAtOnce)
    const another = list(other)
    await waitUntil(() => state.running > limits.pagesAtOnce, 'the page of the other token is read')
    state.letGo()
    const statuses = (await Promise.all([...own, another])).map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 200).length, own.length)
  })

  it('are refused with 503 after they waited for too long behind their own pages', async (t) => {
    lowerLimit(t, 'pageWaitMs', 50)
    const { gated, state } = await startGated()
    const own = Array.from({ length: limits.pagesAtOnce + 3 }, () =>
      gated.call({ path: '/plants' }),
    )
    await waitUntil(() => state.running === limits.pagesAtOnce, 'the first are read')
    await sleep(100)
    state.letGo()
    const statuses = (await Promise.all(own)).map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 503).length, 3)
  })

  it('are refused with 503 while their bodies hold too much memory, and not afterwards', async () => {
    const { service: own, other } = await startDear()
    const create = toLargeCreate(1_000_000)
    const sockets = await openSockets(own, 80)
    const received = sockets.map((socket) => text(socket))
    // Together more than the 64 MiB that bodies may hold. Half of them are for other tokens.
    await sendAll(own, sockets, create.subarray(0, 950_000))
    const [late] = (await openSockets(own, 1)) as [Socket]
    const headers = { ...json, ...other, Connection: 'close' }
    const body = `{"name":"${'x'.repeat(1_000_000)}"}`
    late.write(toBytes({ method: 'POST', path: '/plants', headers, body }))
    assert.deepEqual(statusesOf(await text(late)), ['400'])
    for (const socket of sockets) socket.write(create.subarray(950_000))
    const statuses = (await Promise.all(received)).flatMap(statusesOf)
    assert.deepEqual(new Set(statuses), new Set(['400', '503']))
    const [socket] = (await openSockets(own, 1)) as [Socket]
    socket.write(create)
    assert.deepEqual(statusesOf(await text(socket)), ['400'])
  })
})
