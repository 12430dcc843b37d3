import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { engines } from '../support/engines.ts'
import { authorized, json, startService } from '../support/service.ts'
import { toBytes } from '../support/wire.ts'

/** A connection that stays open, with a way to wait for what the server says. */
function open(url: string) {
  const socket: Socket = connect(Number(new URL(url).port), '127.0.0.1')
  let received = ''
  let isClosed = false
  socket.setEncoding('utf8').on('data', (text: string) => {
    received += text
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    isClosed = true
  })
  async function waitFor(pattern: RegExp): Promise<string> {
    while (!pattern.test(received)) {
      if (isClosed) throw new Error(`closed after: ${received}`)
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    const text = received
    received = ''
    return text
  }
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  return { socket, waitFor, closed }
}

/** Resolves when nobody listens there any more. */
async function waitUntilClosed(url: string): Promise<void> {
  const isRefused = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1')
      socket.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED'))
      socket.on('connect', () => {
        socket.destroy()
        resolve(false)
      })
    })
  while (!(await isRefused())) await new Promise((resolve) => setTimeout(resolve, 10))
}

const ready = toBytes({ path: '/readyz' })

describe('a shutdown', () => {
  it('says that it is not ready, answers what still comes, and closes each connection after it', async () => {
    const service = await startService('sqlite::memory:', { timeouts: { idleGraceMs: 2_000 } })
    const client = open(service.url)
    client.socket.write(ready)
    await client.waitFor(/200 OK[\s\S]*"ok"/)
    const closing = service.close()
    client.socket.write(ready)
    const answer = await client.waitFor(/503[\s\S]*\}/)
    assert.match(answer, /"error":50300/)
    assert.match(answer, /connection: close/i)
    await client.closed
    await closing
  })

  it('closes the connection after a request that no route gets to see', async () => {
    const service = await startService('sqlite::memory:', { timeouts: { idleGraceMs: 2_000 } })
    const client = open(service.url)
    client.socket.write(ready)
    await client.waitFor(/200 OK[\s\S]*"ok"/)
    const closing = service.close()
    client.socket.write(toBytes({ path: '/plants/%zz' }))
    assert.match(await client.waitFor(/400[\s\S]*\}/), /connection: close/i)
    await closing
  })

  it('says that it is not ready to new connections, too, while there are clients', async () => {
    const service = await startService('sqlite::memory:', { timeouts: { idleGraceMs: 2_000 } })
    const client = open(service.url)
    client.socket.write(ready)
    await client.waitFor(/200 OK/)
    const closing = service.close()
    assert.equal((await service.call({ path: '/readyz' })).status, 503)
    client.socket.destroy()
    await closing
  })

  it('takes no new connection', async () => {
    const service = await startService('sqlite::memory:')
    await service.close()
    const { port } = new URL(service.url)
    await assert.rejects(
      new Promise((resolve, reject) =>
        connect(Number(port), '127.0.0.1', resolve as () => void).on('error', reject),
      ),
      { code: 'ECONNREFUSED' },
    )
  })

  for (const engine of engines) {
    it(`answers every create that was accepted, on ${engine.name}`, async () => {
      const url = await engine.newUrl()
      const service = await startService(url)
      const release = await engine.block(url)
      const clients = Array.from({ length: 10 }, () => open(service.url))
      for (const [id, { socket }] of clients.entries()) {
        socket.write(
          toBytes({
            method: 'POST',
            path: '/plants',
            headers: json,
            body: `{"id":${id},"name":"x"}`,
          }),
        )
      }
      // The service answers this after it has read the creates, which wait for the store.
      await service.call({ path: '/healthz' })
      const closing = service.close()
      await release()
      for (const client of clients) assert.match(await client.waitFor(/\}$/), /^HTTP\/1\.1 200/)
      await closing
      const store = await engine.open(url)
      for (const id of clients.keys()) assert.notEqual(await store.getPlant(BigInt(id)), undefined)
      await store.close()
    })
  }

  it('ends in time whatever a client does', async () => {
    const service = await startService('sqlite::memory:', { timeouts: { shutdownMs: 300 } })
    const idle = open(service.url)
    const slow = open(service.url)
    idle.socket.write(ready)
    slow.socket.write('POST /plants HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n')
    await idle.waitFor(/200 OK/)
    const startedAt = performance.now()
    assert.equal(await service.close(), 1)
    assert.ok(performance.now() - startedAt < 3_000)
    await Promise.all([idle.closed, slow.closed])
  })

  it('gives a client that is just about to send the time to do so', async () => {
    const service = await startService('sqlite::memory:', { timeouts: { idleGraceMs: 5_000 } })
    const client = open(service.url)
    client.socket.write(ready)
    await client.waitFor(/200 OK/)
    const closing = service.close()
    await new Promise((resolve) => setTimeout(resolve, 200))
    client.socket.write(toBytes({ path: '/plants/1', headers: authorized }))
    assert.match(await client.waitFor(/404[\s\S]*\}/), /40401/)
    await closing
  })

  it('answers a request that comes a while after its connection', async () => {
    const timeouts = { idleGraceMs: 200 }
    const service = await startService('sqlite::memory:', { timeouts })
    const closing = service.close()
    const client = open(service.url)
    // Longer than the grace, and than it takes to close the port after it.
    await new Promise((resolve) => setTimeout(resolve, 350))
    client.socket.write(ready)
    assert.match(await client.waitFor(/503[\s\S]*\}/), /connection: close/i)
    await closing
  })

  it('answers a request that comes a while after its connection, which came last', async () => {
    const service = await startService('sqlite::memory:')
    const closing = service.close()
    const clients = [open(service.url), open(service.url)] as const
    await waitUntilClosed(service.url)
    await new Promise((resolve) => setTimeout(resolve, 150))
    clients[0].socket.write(ready)
    assert.match(await clients[0].waitFor(/503[\s\S]*\}/), /connection: close/i)
    // The other one never sends anything, and is not waited for much longer.
    assert.equal(await closing, 0)
  })

  it('answers one more request behind an answer that was begun before', async () => {
    const engine = engines[0] as (typeof engines)[number]
    const url = await engine.newUrl()
    const service = await startService(url, { timeouts: { idleGraceMs: 300 } })
    const release = await engine.block(url)
    const client = open(service.url)
    const body = '{"id":1,"name":"x"}'
    client.socket.write(toBytes({ method: 'POST', path: '/plants', headers: json, body }))
    // The service answers this after it has read the create.
    await service.call({ path: '/healthz' })
    const closing = service.close()
    await waitUntilClosed(service.url)
    await release()
    assert.doesNotMatch(await client.waitFor(/\}$/), /connection: close/i)
    await new Promise((resolve) => setTimeout(resolve, 100))
    client.socket.write(ready)
    assert.match(await client.waitFor(/503[\s\S]*\}/), /connection: close/i)
    await closing
  })

  it('is not ended by a client that resets its connection while the port is being closed', async () => {
    const service = await startService('sqlite::memory:')
    const closing = service.close()
    const client = open(service.url)
    await new Promise((resolve) => client.socket.once('connect', resolve))
    await new Promise((resolve) => client.socket.write('GET', resolve))
    client.socket.resetAndDestroy()
    assert.equal(await closing, 0)
  })
})
