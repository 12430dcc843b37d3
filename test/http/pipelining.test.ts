import assert from 'node:assert/strict'
import { channel } from 'node:diagnostics_channel'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import type { Timeouts } from '../../src/contract/limits.ts'
import { maxWaiting, maxWaitingOnConnection } from '../../src/http/node/client-socket.ts'
import { sqlite } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { startService, toCreate } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { exchange, openSocket, statusesOf, toBytes } from '../support/wire.ts'
import { get, post, postChunks } from './scenarios/scenario.ts'

/** Starts a service whose creates wait at a gate, without a timer that cuts their connections. */
async function startGated(timeouts: Partial<Timeouts> = {}) {
  const gate = Promise.withResolvers<void>()
  const store = await sqlite.open(await sqlite.newUrl())
  const service = await startService('sqlite::memory:', {
    store: {
      ...store,
      createPlant: (plant) => gate.promise.then(() => store.createPlant(plant)),
    },
    timeouts: { stallTimeoutMs: 600_000, ...timeouts },
  })
  releaseAfterTest(gate.resolve)
  return { service, gate }
}

const service = await startService('sqlite::memory:')

describe('pipelined requests', () => {
  async function statuses(...requests: Buffer[]): Promise<number[]> {
    const answers = await exchange(service.url, Buffer.concat(requests), { answers: 9 })
    return answers.map(({ status }) => status)
  }

  /** Connects to a service whose creates wait at a gate. */
  async function connectToSlow() {
    const { service: slow, gate } = await startGated({
      headersTimeoutMs: 600_000,
      requestTimeoutMs: 600_000,
      keepAliveTimeoutMs: 600_000,
    })
    // The answer on another connection shows that the service has read what was sent before.
    const untilRead = () => slow.call({ path: '/healthz' })
    return { socket: openSocket(slow.url), gate, untilRead }
  }

  it('are all answered when the body of the last one is broken', async () => {
    const parts = [toCreate(1), postChunks(''), Buffer.from('ZZ\r\n')]
    for (const writes of [parts, [Buffer.concat(parts)]]) {
      const { socket, gate, untilRead } = await connectToSlow()
      const received = text(socket)
      for (const part of writes) {
        socket.write(part)
        await untilRead()
      }
      gate.resolve()
      assert.deepEqual(statusesOf(await received), [200, 400])
    }
  })

  it('keep a body in chunks of one byte while they wait', async () => {
    const { socket, gate, untilRead } = await connectToSlow()
    const received = text(socket)
    const head = post('', { 'Transfer-Encoding': 'chunked', Connection: 'close' })
    const name = 'n'.repeat(500)
    const body = [...`{"id":2,"name":"${name}"}`].map((byte) => `1\r\n${byte}\r\n`).join('')
    socket.write(Buffer.concat([toCreate(1), toBytes(head), Buffer.from(body.slice(0, 1_200))]))
    await untilRead()
    gate.resolve()
    socket.write(`${body.slice(1_200)}0\r\n\r\n`)
    const answers = await received
    assert.deepEqual(statusesOf(answers), [200, 200])
    assert.ok(answers.endsWith(`{"name":"${name}"}`))
  })

  it('are answered in order up to the bound, and then refused with 503', async () => {
    const { socket, gate, untilRead } = await connectToSlow()
    const received = text(socket)
    const tiny = 'GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n'
    const last = toBytes({ path: '/healthz', headers: { Connection: 'close' } })
    socket.write(Buffer.concat([toCreate(1), Buffer.from(tiny.repeat(2_000)), last]))
    for (let turn = 0; turn < 20; turn++) await untilRead()
    gate.resolve()
    const statuses = statusesOf(await received)
    assert.equal(statuses.length, maxWaitingOnConnection + 2)
    assert.deepEqual(new Set(statuses.slice(0, -1)), new Set([200]))
    assert.equal(statuses.at(-1), 503)
  })

  it('are served on other connections while a client lets as many wait as may wait', async () => {
    const { service: slow, gate } = await startGated()
    const tiny = Buffer.from(
      'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(maxWaitingOnConnection),
    )
    const sockets = Array.from({ length: 2 + maxWaiting / maxWaitingOnConnection }, () =>
      openSocket(slow.url),
    )
    const received = sockets.map((socket) => text(socket))
    for (const [id, socket] of sockets.entries()) {
      socket.write(Buffer.concat([toCreate(id), tiny]))
      await slow.call({ path: '/healthz' })
    }
    assert.equal((await slow.call({ path: '/plants/77' })).status, 404)
    gate.resolve()
    for (const socket of sockets)
      socket.end(toBytes({ path: '/nowhere', headers: { Connection: 'close' } }))
    const ends = (await Promise.all(received)).map((answers) => statusesOf(answers).at(-1))
    assert.ok(ends.includes(503), 'no connection was refused')
    assert.ok(ends.includes(404), 'every connection was refused')
  })

  it('are not even parsed after the one that was refused', async (test) => {
    const { service: slow } = await startGated()
    let parsed = 0
    const count = () => parsed++
    const began = channel('http.server.request.start')
    began.subscribe(count)
    test.after(() => began.unsubscribe(count))
    const socket = openSocket(slow.url)
    // About as many as are read at once.
    const tiny = 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2_000)
    socket.write(Buffer.concat([toCreate(1), Buffer.from(tiny)]))
    await waitUntil(() => parsed > maxWaitingOnConnection, 'a request is refused')
    socket.write(tiny)
    for (let turn = 0; turn < 20; turn++) await slow.call({ path: '/healthz' })
    assert.ok(parsed < maxWaitingOnConnection + 30, `${parsed} requests were parsed`)
  })

  it('wait no longer once their client has left: others have room again', async () => {
    const { service: slow, gate } = await startGated()
    const tiny = toBytes({ path: '/healthz' })
    const most = Array(maxWaitingOnConnection).fill(tiny)
    const sockets = Array.from({ length: maxWaiting / maxWaitingOnConnection }, () =>
      openSocket(slow.url),
    )
    for (const [id, socket] of sockets.entries()) {
      socket.write(Buffer.concat([toCreate(id), ...most]))
      await slow.call({ path: '/healthz' })
    }
    for (const socket of sockets) socket.resetAndDestroy()
    gate.resolve()
    for (let turn = 0; turn < 20; turn++) await slow.call({ path: '/healthz' })
    const socket = openSocket(slow.url)
    const received = text(socket)
    const last = toBytes({ path: '/healthz', headers: { Connection: 'close' } })
    socket.write(Buffer.concat([toCreate(100), ...Array(50).fill(tiny), last]))
    assert.deepEqual(statusesOf(await received), Array(52).fill(200))
  })

  it('do not cost a client the last answer when they come after it, however many', async () => {
    const name = 'x'.repeat(700_000)
    await service.store.createPlant({ id: 20n, name })
    const last = toBytes(get('/plants/20', { Connection: 'close' }))
    const rest = toBytes(post(`"${name}${name}"`))
    for (let round = 0; round < 10; round++) {
      assert.deepEqual(await statuses(last, rest), [200])
    }
  })

  it('are executed after a met expectation, which leaves the connection open', async () => {
    const met = toCreate(10, { Expect: '100-continue' })
    const last = toCreate(12, { Connection: 'close' })
    assert.deepEqual(await statuses(met, toCreate(11), met, last), [200, 200, 409, 200])
  })

  it('are not executed after the last answer before a shutdown', async () => {
    const store = await sqlite.open(await sqlite.newUrl())
    const ending = await startService('sqlite::memory:', {
      store: { ...store, close: async () => {} },
      timeouts: { idleGraceMs: 60_000 },
    })
    // An open connection keeps the grace from ending at once.
    const socket = openSocket(ending.url)
    const received = text(socket)
    await ending.call({ path: '/healthz' })
    const closed = ending.close()
    socket.write(Buffer.concat([toCreate(6), toCreate(7)]))
    assert.deepEqual(statusesOf(await received), [200])
    await closed
    const stored = await Promise.all([store.getPlant(6n), store.getPlant(7n)])
    const ids = stored.map((plant) => plant?.id)
    assert.deepEqual(ids, [6n, undefined])
  })
})
