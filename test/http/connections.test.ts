import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { before, describe, it, type TestContext } from 'node:test'
import { collect } from '../faults/lab/answer-stream.ts'
import { stopClock } from '../support/clock.ts'
import { lowerLimit } from '../support/limits.ts'
import { parseMetrics } from '../support/metrics.ts'
import { json, startService, type TestService, toCreate } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { exchange, openSocket, toBytes } from '../support/wire.ts'

const memory = 'sqlite::memory:'

/** Sends each part when the answer to the one before has come, and answers everything received. */
async function converse(
  url: string,
  parts: [send: Buffer | string, until: RegExp][],
): Promise<string> {
  const socket = openSocket(url)
  let received = ''
  let look = () => {}
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.setEncoding('utf8').on('data', (text: string) => {
    received += text
    look()
  })
  for (const [part, until] of parts) {
    socket.write(part)
    const matched = new Promise<void>((resolve) => {
      look = () => until.test(received) && resolve()
    })
    await Promise.race([matched, closed])
  }
  return received
}

const statusesOf = (text: string) =>
  [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status))
/** Matches nothing: waits until the server closes the connection. */
const untilClosed = /$^x/

describe('a connection', () => {
  let service: TestService
  before(async () => {
    service = await startService(memory)
  })

  it('gets 100 Continue once, and only if the request may have a body', async () => {
    const head = toBytes({
      method: 'POST',
      path: '/plants',
      headers: { ...json, Expect: '100-continue', 'Content-Length': '20' },
    })
    const text = await converse(service.url, [
      [head, /100 Continue/],
      ['{"id":101,"name":"x"}'.slice(0, 20), /400/],
    ])
    assert.deepEqual(statusesOf(text), [100, 400])
    const anonymous = toBytes({
      method: 'POST',
      path: '/plants',
      headers: { Expect: '100-continue', 'Content-Length': '20' },
    })
    assert.deepEqual(statusesOf(await converse(service.url, [[anonymous, /\}$/]])), [401])
  })

  it('answers pipelined requests in order: each sees what the one before did', async () => {
    const get = toBytes({ path: '/plants/900', headers: json })
    const remove = toBytes({ method: 'DELETE', path: '/plants/900', headers: json })
    const bytes = Buffer.concat([get, toCreate(900), get, remove, get])
    const answers = await exchange(service.url, bytes, { answers: 5 })
    assert.deepEqual(
      answers.map(({ status }) => status),
      [404, 200, 200, 204, 404],
    )
  })

  it('gets no 100 Continue in HTTP/1.0', async () => {
    const bytes = toBytes({
      method: 'POST',
      path: '/plants',
      headers: { ...json, Expect: '100-continue' },
      body: '{"id":102,"name":"x"}',
    })
    const text = await converse(service.url, [
      [bytes.toString().replace('HTTP/1.1', 'HTTP/1.0'), untilClosed],
    ])
    assert.deepEqual(statusesOf(text), [200])
  })

  it('gets the answers to all creates before its broken bytes are refused', async () => {
    const second = toCreate(104)
    const cut = second.length - 5
    const text = await converse(service.url, [
      [Buffer.concat([toCreate(103), second.subarray(0, cut)]), /\}$/],
      [Buffer.concat([second.subarray(cut), Buffer.from('GARBAGE\r\n\r\n')]), untilClosed],
    ])
    assert.deepEqual(statusesOf(text), [200, 200, 400])
    assert.match(text, /Connection: close\r\n/)
  })

  it('gets the answer to a create before a CONNECT after it is refused', async () => {
    const bytes = Buffer.concat([
      toCreate(105),
      Buffer.from('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'),
    ])
    assert.deepEqual(statusesOf(await converse(service.url, [[bytes, untilClosed]])), [200, 400])
  })

  it('gets one answer to a request, whatever happens to its body afterwards', async () => {
    const early = 'POST /plants HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
    const broken = await converse(service.url, [
      [early, /\}$/],
      ['ZZ\r\n', untilClosed],
    ])
    assert.deepEqual(statusesOf(broken), [401])
    const impatient = await startService(memory, {
      timeouts: { headersTimeoutMs: 200, requestTimeoutMs: 400 },
    })
    const silent = await converse(impatient.url, [[early, untilClosed]])
    assert.deepEqual(statusesOf(silent), [401])
  })

  it('gets one refusal, however many broken bytes follow', async () => {
    const text = await converse(service.url, [
      ['GARBAGE\r\n\r\n', /\}$/],
      ['MORE\r\n\r\n', untilClosed],
    ])
    assert.deepEqual(statusesOf(text), [400])
  })

  it('does not end the service when it is reset while it is refused', async () => {
    for (const bytes of [
      'CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n',
      'GARBAGE\r\n\r\n',
      'POST /plants HTTP/1.1\r\nHost: x\r\n\r\n',
    ]) {
      const socket = openSocket(service.url)
      await new Promise((resolve) => socket.write(bytes, resolve))
      socket.resetAndDestroy()
    }
    assert.equal((await service.call({ path: '/healthz' })).status, 200)
  })

  it('is closed after a request for an upgrade, which is answered as any other', async () => {
    const upgrade = { Connection: 'Upgrade', Upgrade: 'h2c' }
    const create = toCreate(107, upgrade)
    const get = toBytes({ path: '/plants/107', headers: { ...json, ...upgrade } })
    const alone = toBytes({ path: '/healthz', headers: { Upgrade: 'h2c' } })
    for (const bytes of [create, get, alone]) {
      const text = await converse(service.url, [[bytes, untilClosed]])
      assert.deepEqual(statusesOf(text), [200])
      assert.match(text, /\r\nConnection: close\r\n/)
    }
  })

  it('executes nothing after a request for an upgrade, wherever its packets end', async () => {
    await service.create('{"id":108,"name":"x"}')
    const upgrade = toBytes({
      path: '/healthz',
      headers: { Connection: 'Upgrade', Upgrade: 'foo' },
    })
    const hidden = toBytes({
      method: 'DELETE',
      path: '/plants/108',
      headers: { ...json, Connection: 'close' },
    })
    const outer = toBytes({
      method: 'POST',
      path: '/plants',
      headers: { ...json, 'Content-Length': `${hidden.length}` },
    })
    // Node drops the head of the POST with the rest of its packet, and would parse its body.
    const inTurn = await converse(service.url, [
      [Buffer.concat([upgrade, outer]), /\}$/],
      [hidden, untilClosed],
    ])
    assert.deepEqual(statusesOf(inTurn), [200])
    const atOnce = await collect(Number(new URL(service.url).port), [upgrade, hidden])
    assert.deepEqual(statusesOf(atOnce.toString()), [200])
    assert.equal((await service.call({ path: '/plants/108' })).status, 200)
  })

  it('gives each answer a request id of its own', async () => {
    const answers = await exchange(
      service.url,
      Buffer.concat([toCreate(106), toCreate(106), toCreate(106)]),
      { answers: 3 },
    )
    assert.equal(new Set(answers.map(({ headers }) => headers.get('x-request-id'))).size, 3)
  })
})

describe('when every connection is taken', () => {
  const health = toBytes({ path: '/healthz' })
  const body = '{"id":1,"name":"x"}'
  const head = toCreate(1, { Expect: '100-continue' }).subarray(0, -body.length)

  /** Starts a service that has room for three connections. */
  async function startSmall(test: TestContext): Promise<TestService> {
    lowerLimit(test, 'connections', 3)
    return startService(memory)
  }

  /** Opens a connection, and waits for the answer to its bytes. */
  async function connectWith(service: TestService, bytes: Buffer): Promise<Socket> {
    const socket = openSocket(service.url).setEncoding('latin1')
    socket.write(bytes)
    await once(socket, 'data')
    return socket
  }

  /** A connection with a request that waits for its body. */
  const connectBusy = (service: TestService) => connectWith(service, head)

  it('a new one is served, and the one that has been idle longest is closed', async (test) => {
    const service = await startSmall(test)
    const used = await connectWith(service, health)
    // It is accepted before the answer on the next one.
    const silent = openSocket(service.url).resume()
    await once(silent, 'connect')
    const last = await connectWith(service, health)
    used.write(health)
    await once(used, 'data')
    const closed: string[] = []
    for (const [name, socket] of Object.entries({ used, silent, last })) {
      socket.once('close', () => closed.push(name))
    }
    const creating = await connectWith(service, toCreate(1))
    assert.equal((await service.store.getPlant(1n))?.name, 'x')
    await waitUntil(() => closed.length > 0, 'one is closed')
    assert.deepEqual(closed, ['silent'])
    const next = await connectWith(service, health)
    await waitUntil(() => closed.length > 1, 'another is closed')
    assert.deepEqual(closed, ['silent', 'last'])
    assert.deepEqual([used.closed, creating.closed, next.closed], [false, false, false])
  })

  it('one that has never sent a request is closed first, unless it is new', async (test) => {
    const service = await startSmall(test)
    const clock = stopClock(test)
    const closed: string[] = []
    const note = (name: string, socket: Socket) => socket.once('close', () => closed.push(name))
    const openSilent = async (name: string) => {
      const socket = openSocket(service.url).resume()
      await once(note(name, socket), 'connect')
    }
    const openUsed = async (name: string) => {
      note(name, await connectWith(service, health))
      clock.advance(1_000)
    }
    await openUsed('first')
    await openSilent('silent')
    await openUsed('second')
    await openUsed('third')
    await waitUntil(() => closed.length > 0, 'one is closed')
    await openSilent('new')
    await connectWith(service, health)
    await waitUntil(() => closed.length > 2, 'two more are closed')
    assert.deepEqual(closed, ['silent', 'first', 'second'])
  })

  it('one with an open request is not closed, however long it takes', async (test) => {
    const service = await startSmall(test)
    const busy = await connectBusy(service)
    for (let count = 0; count < 6; count++) await connectWith(service, health)
    busy.write(body)
    assert.match(String(await once(busy, 'data')), /^HTTP\/1\.1 200 /)
  })

  it('by open requests, a new one is closed and counted', async (test) => {
    const service = await startSmall(test)
    const busy = [
      await connectBusy(service),
      await connectBusy(service),
      await connectBusy(service),
    ] as const
    const late = openSocket(service.url).resume()
    late.write(health)
    await once(late, 'close')
    assert.equal(late.bytesRead, 0)
    busy[0].write(body)
    assert.match(String(await once(busy[0], 'data')), /^HTTP\/1\.1 200 /)
    const metrics = parseMetrics((await service.call({ path: '/metrics' })).body)
    assert.equal(metrics.get('plant_store_refusals_total{reason="connections"}'), 1)
    assert.deepEqual([busy[1].closed, busy[2].closed], [false, false])
  })
})
