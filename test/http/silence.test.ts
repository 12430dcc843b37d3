import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { authorized, startService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { exchange, openSocket, toBytes } from '../support/wire.ts'

const memory = 'sqlite::memory:'
const health = toBytes({ path: '/healthz' })

describe('an idle connection', () => {
  it('is announced with the time that it is kept, unless the answer closes it', async () => {
    const { url } = await startService(memory)
    const keepAliveOf = async (bytes: Buffer | string) => {
      const [answer] = await exchange(url, Buffer.from(bytes), { answers: 1 })
      return answer?.headers.get('keep-alive') ?? null
    }
    assert.equal(await keepAliveOf(health), 'timeout=72')
    const last = toBytes({ path: '/healthz', headers: { Connection: 'close' } })
    assert.equal(await keepAliveOf(last), null)
    const stream = { ...authorized, Accept: 'text/event-stream' }
    assert.equal(await keepAliveOf(toBytes({ path: '/events', headers: stream })), null)
    assert.equal(await keepAliveOf('GET /healthz HTTP/1.0\r\n\r\n'), null)
    const unmet = { Expect: '100-continue', 'Content-Length': '2' }
    assert.equal(await keepAliveOf(toBytes({ path: '/plants', headers: unmet })), null)
    const { Authorization } = authorized
    const kept = `Connection: keep-alive\r\nAuthorization: ${Authorization}\r\n\r\n`
    assert.equal(await keepAliveOf(`GET /plants HTTP/1.0\r\n${kept}`), 'timeout=72')
    assert.equal(await keepAliveOf(`GET /plants.csv HTTP/1.0\r\n${kept}`), null)
  })

  it('is kept for longer than a client may stop reading, and then closed', async () => {
    const timeouts = { stallTimeoutMs: 50, keepAliveTimeoutMs: 400 }
    const { url } = await startService(memory, { timeouts })
    const socket = openSocket(url).resume()
    const startedAt = performance.now()
    socket.write(health)
    await waitUntil(() => socket.closed, 'the end of the connection')
    assert.ok(performance.now() - startedAt >= timeouts.keepAliveTimeoutMs)
  })

  it('is dropped like any other when its client sends again and does not read', async () => {
    const service = await startService(memory, {
      timeouts: { stallTimeoutMs: 100, keepAliveTimeoutMs: 600_000 },
    })
    const countConnections = async () => {
      const { body } = await service.call({ path: '/metrics', headers: authorized })
      return Number(/^plant_store_http_connections (\d+)$/m.exec(body)?.[1])
    }
    const name = 'x'.repeat(1_000)
    const plants = Array.from({ length: 900 }, (_, id) => ({ id: BigInt(id), name }))
    await service.store.importPlants(plants, 'keep')
    const socket = openSocket(service.url)
    socket.write(health)
    await new Promise((resolve) => socket.once('data', resolve))
    socket.pause()
    assert.equal(await countConnections(), 2)
    const get = toBytes({ path: '/plants?limit=1000', headers: authorized })
    socket.write(Buffer.concat(Array(10).fill(get)))
    await waitUntil(async () => (await countConnections()) === 1, 'the end of the silent one')
  })
})
