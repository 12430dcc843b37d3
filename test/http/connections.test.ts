import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import { collect } from '../faults/lab/answer-stream.ts'
import { stopClock } from '../support/clock.ts'
import { engines } from '../support/engines.ts'
import { lowerLimit } from '../support/limits.ts'
import { startService, type TestService, toCreate } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { openConversation, openSocket, statusesOf, toBytes } from '../support/wire.ts'
import { del, get, post, upload, visit } from './scenarios/scenario.ts'

const memory = 'sqlite::memory:'
const impatient = { timeouts: { headersTimeoutMs: 200, requestTimeoutMs: 400 } }

/** Sends each part when the answer to the one before has come, and answers everything received. */
async function converse(
  url: string,
  parts: [send: Buffer | string, until: RegExp][],
): Promise<string> {
  const { socket, waitFor } = openConversation(url)
  let received = ''
  for (const [part, until] of parts) {
    socket.write(part)
    received += await waitFor(until)
  }
  return received
}

/** Matches nothing: waits until the server closes the connection. */
const untilClosed = /$^x/

const service = await startService(memory)

describe('a connection', () => {
  it('gets 100 Continue once, and only if the request may have a body', async () => {
    const headers = { Expect: '100-continue', 'Content-Length': '20' }
    const received = await converse(service.url, [
      [toBytes(post('', headers)), /100 Continue/],
      ['{"id":101,"name":"x"}'.slice(0, 20), /400/],
    ])
    assert.deepEqual(statusesOf(received), [100, 400])
    const anonymous = toBytes({ method: 'POST', path: '/plants', headers })
    assert.deepEqual(statusesOf(await converse(service.url, [[anonymous, /\}$/]])), [401])
  })

  it('gets no 100 Continue in HTTP/1.0', async () => {
    const bytes = toCreate(102, { Expect: '100-continue' })
    const received = await converse(service.url, [
      [bytes.toString().replace('HTTP/1.1', 'HTTP/1.0'), untilClosed],
    ])
    assert.deepEqual(statusesOf(received), [200])
  })

  it('gets the answers to all creates before its broken bytes are refused', async () => {
    const second = toCreate(104)
    const cut = second.length - 5
    const received = await converse(service.url, [
      [Buffer.concat([toCreate(103), second.subarray(0, cut)]), /\}$/],
      [Buffer.concat([second.subarray(cut), Buffer.from('GARBAGE\r\n\r\n')]), untilClosed],
    ])
    assert.deepEqual(statusesOf(received), [200, 200, 400])
    assert.match(received, /Connection: close\r\n/)
  })

  it('gets one answer to a request, whatever happens to its body afterwards', async () => {
    const early = 'POST /plants HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
    const broken = await converse(service.url, [
      [early, /\}$/],
      ['ZZ\r\n', untilClosed],
    ])
    assert.deepEqual(statusesOf(broken), [401])
    const { url } = await startService(memory, impatient)
    const silent = await converse(url, [[early, untilClosed]])
    assert.deepEqual(statusesOf(silent), [401])
  })

  it('has its time limit back once an import has been answered', async () => {
    const { url } = await startService(memory, impatient)
    const received = await converse(url, [
      [toBytes(upload('ndjson', '{"id":1,"name":"x"}')), /\}$/],
      ['GET /plants HTTP/1.1\r\nHost: x\r\nX-', untilClosed],
    ])
    assert.deepEqual(statusesOf(received), [200, 408])
  })

  it('keeps a stream of events that malformed bytes follow', async () => {
    const service = await startService(memory, { timeouts: { stallTimeoutMs: 50, commentMs: 20 } })
    const { socket, waitFor } = openConversation(service.url)
    socket.write(toBytes(get('/events', { Accept: 'text/event-stream' })))
    await waitFor(/retry: /)
    socket.write('GARBAGE\r\n\r\n')
    // Twice as long as a client may stop reading.
    await waitFor(/(?:\n:\n[\s\S]*){6}/)
    await service.create('{"id":1,"name":"x"}')
    assert.match(await waitFor(/plant\.created/), /plant\.created/)
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

  it('executes nothing after a request for an upgrade, wherever its packets end', async () => {
    await service.create('{"id":108,"name":"x"}')
    const upgrade = toBytes(visit('/healthz', { Connection: 'Upgrade', Upgrade: 'foo' }))
    const hidden = toBytes(del('/plants/108', { Connection: 'close' }))
    const outer = toBytes(post('', { 'Content-Length': `${hidden.length}` }))
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
})

describe('when every connection is taken', () => {
  const health = toBytes(visit('/healthz'))
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
    assert.equal(await service.sample('plant_store_refusals_total{reason="connections"}'), 1)
    assert.deepEqual([busy[1].closed, busy[2].closed], [false, false])
  })
})

/** Sends bytes, ends the sending side at once, and answers all that comes back. */
async function sendAndEnd(url: string, ...requests: Buffer[]): Promise<number[]> {
  return statusesOf(await text(openSocket(url).end(Buffer.concat(requests))))
}

for (const engine of engines) {
  describe(`a client that ends its side after the last request (${engine.name})`, () => {
    it('gets every answer, and then the end', async () => {
      const { url } = await startService(await engine.newUrl())
      assert.deepEqual(await sendAndEnd(url, toCreate(1), toCreate(1)), [200, 409])
      const paths = ['/plants', '/plants/1', '/plants.csv', '/events', '/metrics', '/readyz']
      for (const request of [
        ...paths.map((path) => get(path)),
        get('/events', { Accept: 'text/event-stream' }),
        upload('ndjson', '{"id":2,"name":"x"}\n'),
      ]) {
        assert.deepEqual(await sendAndEnd(url, toBytes(request)), [200], request.path)
      }
    })

    it('gets the answer to a write however long that takes', async () => {
      const url = await engine.newUrl()
      const service = await startService(url, { store: await engine.open(url) })
      const release = await engine.block(url)
      const socket = openSocket(service.url).end(toCreate(1))
      const answer = text(socket)
      await once(socket, 'finish')
      await release()
      assert.deepEqual(statusesOf(await answer), [200])
    })
  })
}
