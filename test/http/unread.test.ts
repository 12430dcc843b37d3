import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, IncomingMessage, request, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { limits, type Timeouts } from '../../src/contract/limits.ts'
import { buildUnreadCount } from '../../src/http/answer.ts'
import { openConnection } from '../../src/http/node/client-socket.ts'
import { readEvents } from '../support/event-stream.ts'
import { lowerLimit } from '../support/limits.ts'
import { releaseAfterTest } from '../support/release.ts'
import { authorized, startService, type TestService } from '../support/service.ts'
import { storeMany } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'
import { get } from './scenarios/scenario.ts'

/** Starts a service with one plant, which takes six million bytes as JSON. */
async function start(timeouts?: Partial<Timeouts>): Promise<TestService> {
  const service = await startService('sqlite::memory:', { timeouts })
  await service.store.createPlant({ id: 1n, name: '\u0001'.repeat(1_000_000) })
  return service
}

/** Asks for the plant on this many connections, and reads none of the answers. */
async function holdAnswers(service: TestService, count: number): Promise<Socket[]> {
  const request = get('/plants/1', { Connection: 'close' })
  const sockets = Array.from({ length: count }, () => openSocket(service.url).pause())
  for (const socket of sockets) {
    socket.write(toBytes(request))
    await service.call({ path: '/plants/2' })
  }
  return sockets
}

/** Whether a connection is cut before its answer is complete. */
async function isCut(socket: Socket): Promise<boolean> {
  const answer = await text(socket).catch(() => '')
  return !answer.endsWith('}')
}

describe('answers that are not read', () => {
  it('are cut beyond the bound of their service, the oldest first', async (t) => {
    lowerLimit(t, 'unreadBytes', 30_000_000)
    const services = [await start(), await start()] as const
    const others = await holdAnswers(services[1], 4)
    const unread = await holdAnswers(services[0], 6)
    const cut = await Promise.all([...unread, ...others].map(isCut))
    assert.deepEqual(cut, [true, true, true, ...Array(7).fill(false)])
  })

  it('take room only until they are read: a client gets as many as it reads', async (t) => {
    lowerLimit(t, 'unreadBytes', 16_000_000)
    const service = await start()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    releaseAfterTest(() => agent.destroy())
    for (let answer = 0; answer < 5; answer++) {
      const sent = request(`${service.url}/plants/1`, { agent, headers: authorized }).end()
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      for await (const _ of response);
      assert.equal(sent.reusedSocket, answer > 0)
    }
  })

  it('are cut by the time without reading, not by when the first of them was sent', () => {
    const countUnread = buildUnreadCount()
    const [reading, stalled, last] = Array.from({ length: 3 }, () => {
      const socket = new Socket()
      openConnection(socket, 0)
      return new ServerResponse(new IncomingMessage(socket))
    }) as [ServerResponse, ServerResponse, ServerResponse]
    countUnread(reading, limits.unreadBytes / 4)
    countUnread(stalled, limits.unreadBytes * 0.75)
    countUnread(reading, limits.unreadBytes / 8)
    countUnread(last, limits.unreadBytes / 8 + 1)
    const cut = [reading, stalled, last].map(({ req }) => req.socket.destroyed)
    assert.deepEqual(cut, [false, true, false])
  })

  it('of a stream take room only until its client has caught up', async (t) => {
    lowerLimit(t, 'unreadBytes', 10_000_000)
    // What streams have not read is counted more often than comments come.
    const service = await start({ commentMs: 300 })
    // With a change after it, the large one is on a page of its own, for which a stream waits.
    await service.create('{"id":2,"name":"x"}')
    const clock = await readEvents(service.url, '?after=latest')
    const untilCounted = async () => {
      const before = clock.comments()
      await waitUntil(() => clock.comments() > before + 1, 'unread bytes have been counted')
    }
    const slow = await readEvents(service.url)
    slow.response.pause()
    await untilCounted()
    slow.response.resume()
    await slow.waitFor(2)
    const next = await readEvents(service.url)
    next.response.pause()
    await untilCounted()
    assert.equal(slow.response.destroyed, false)
    await service.create('{"id":3,"name":"x"}')
    await slow.waitFor(3)
    next.response.resume()
    await next.waitFor(3)
  })
})

describe('an idle connection', () => {
  const health = toBytes({ path: '/healthz' })

  it('is kept for longer than a client may stop reading, and then closed', async () => {
    const timeouts = { stallTimeoutMs: 50, keepAliveTimeoutMs: 400 }
    const { url } = await startService('sqlite::memory:', { timeouts })
    const socket = openSocket(url).resume()
    const startedAt = performance.now()
    socket.write(health)
    await waitUntil(() => socket.closed, 'the end of the connection')
    assert.ok(performance.now() - startedAt >= timeouts.keepAliveTimeoutMs)
  })

  it('is dropped like any other when its client sends again and does not read', async () => {
    const service = await startService('sqlite::memory:', {
      timeouts: { stallTimeoutMs: 100, keepAliveTimeoutMs: 600_000 },
    })
    await storeMany(service.store, 0, 900, 'x'.repeat(1_000))
    const socket = openSocket(service.url)
    socket.write(health)
    await new Promise((resolve) => socket.once('data', resolve))
    socket.pause()
    assert.equal(await service.countConnections(), 2)
    socket.write(Buffer.concat(Array(10).fill(toBytes(get('/plants?limit=1000')))))
    const isEnded = async () => (await service.countConnections()) === 1
    await waitUntil(isEnded, 'the end of the silent one')
  })
})
