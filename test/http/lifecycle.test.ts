import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { type Engine, engines, sqlite } from '../support/engines.ts'
import { startService, toCreate } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { openConversation, openSocket, toBytes } from '../support/wire.ts'

async function isRefused(url: string): Promise<boolean> {
  const socket = openSocket(url)
  try {
    await once(socket, 'connect')
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED'
  } finally {
    socket.destroy()
  }
}

/** Resolves when the service listens no more. */
function waitUntilClosed(url: string): Promise<void> {
  return waitUntil(() => isRefused(url), 'the port is closed')
}

/** Opens a store that tells how many creates it has begun. */
async function openCounted(engine: Engine, url: string) {
  const store = await engine.open(url)
  let creates = 0
  const createPlant: typeof store.createPlant = (plant) => {
    creates++
    return store.createPlant(plant)
  }
  const waitForCreates = (count: number) =>
    waitUntil(() => creates === count, `${count} creates have begun`)
  return { store: { ...store, createPlant }, waitForCreates }
}

const memory = 'sqlite::memory:'
const ready = toBytes({ path: '/readyz' })
/** Longer than a test takes: a shutdown that ends sooner does not end because of it. */
const longGrace = { timeouts: { idleGraceMs: 60_000 } }

/** Starts a service with a client whose first request has been answered. */
async function startAndConnect() {
  const service = await startService(memory, longGrace)
  const client = openConversation(service.url)
  client.socket.write(ready)
  await client.waitFor(/200 OK[\s\S]*"ok"/)
  return { service, client }
}

describe('a shutdown', () => {
  it('is not ready, answers requests that still come, and closes each connection', async () => {
    const { service, client } = await startAndConnect()
    const closing = service.close()
    client.socket.write(ready)
    const answer = await client.waitFor(/503[\s\S]*\}/)
    assert.match(answer, /"error":50300/)
    assert.match(answer, /connection: close/i)
    await client.closed
    await closing
  })

  it('holds the port for the balancers of clients that were there just now', async () => {
    const service = await startService(memory, { timeouts: { idleGraceMs: 2_000 } })
    const client = openConversation(service.url)
    client.socket.write(toBytes({ path: '/healthz', headers: { Connection: 'close' } }))
    await client.closed
    const closing = service.close('full')
    assert.equal((await service.call({ path: '/readyz' })).status, 503)
    await closing
  })

  it('holds the port for nobody where nobody was', { timeout: 30_000 }, async () => {
    const service = await startService(memory, longGrace)
    await service.close('full')
    assert.ok(await isRefused(service.url))
  })

  for (const engine of engines) {
    it(`answers every accepted create, on ${engine.name}`, async () => {
      const url = await engine.newUrl()
      const { store, waitForCreates } = await openCounted(engine, url)
      const service = await startService(url, { store })
      const release = await engine.block(url)
      const clients = Array.from({ length: 10 }, () => openConversation(service.url))
      for (const [id, { socket }] of clients.entries()) socket.write(toCreate(id))
      await waitForCreates(10)
      const closing = service.close()
      await release()
      for (const client of clients) assert.match(await client.waitFor(/\}$/), /^HTTP\/1\.1 200/)
      await closing
      const after = await engine.open(url)
      for (const id of clients.keys()) assert.notEqual(await after.getPlant(BigInt(id)), undefined)
    })
  }

  it('ends in time whatever a client does', async () => {
    const service = await startService(memory, {
      // Nothing else ends an incomplete request.
      timeouts: { shutdownMs: 300, headersTimeoutMs: 600_000, requestTimeoutMs: 600_000 },
    })
    const idle = openConversation(service.url)
    const slow = openConversation(service.url)
    slow.socket.write('POST /plants HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n')
    await once(slow.socket, 'connect')
    idle.socket.write(ready)
    await idle.waitFor(/200 OK/)
    assert.equal(await service.close(), 1)
    await Promise.all([idle.closed, slow.closed])
  })

  it('answers a request that comes after the port is closed, over a connection from before', async () => {
    const service = await startService(memory, { timeouts: { idleGraceMs: 200 } })
    const client = openConversation(service.url)
    // It never sends anything, and the shutdown does not wait for it much longer.
    openConversation(service.url)
    await service.call({ path: '/healthz' })
    const closing = service.close()
    await waitUntilClosed(service.url)
    client.socket.write(ready)
    assert.match(await client.waitFor(/503[\s\S]*\}/), /connection: close/i)
    assert.equal(await closing, 0)
  })

  it('answers one more request after an answer that began before it', async () => {
    const url = await sqlite.newUrl()
    const { store, waitForCreates } = await openCounted(sqlite, url)
    const service = await startService(url, { store, timeouts: { idleGraceMs: 1_000 } })
    const release = await sqlite.block(url)
    const client = openConversation(service.url)
    client.socket.write(toCreate(1))
    await waitForCreates(1)
    const closing = service.close()
    await waitUntilClosed(service.url)
    await release()
    assert.doesNotMatch(await client.waitFor(/\}$/), /connection: close/i)
    client.socket.write(ready)
    assert.match(await client.waitFor(/503[\s\S]*\}/), /connection: close/i)
    await closing
  })

  it('survives a client that resets its connection while the port is being closed', async () => {
    const service = await startService(memory, { timeouts: { idleGraceMs: 200 } })
    const client = openConversation(service.url)
    await once(client.socket, 'connect')
    const closing = service.close()
    await new Promise((resolve) => client.socket.write('GET', resolve))
    client.socket.resetAndDestroy()
    assert.equal(await closing, 0)
  })
})
