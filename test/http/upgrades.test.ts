import assert from 'node:assert/strict'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { authorized, json, startService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'

const memory = 'sqlite::memory:'
const upgrade = { Connection: 'Upgrade', Upgrade: 'h2c' }
const statusesOf = (received: string) => received.match(/(?<=HTTP\/1\.1 )\d+/g)

/** Collects what a connection receives. */
function connectTo(url: string) {
  const socket = openSocket(url)
  let received = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    received += chunk
  })
  return { socket, received: () => received }
}

/** Imports plants that take this many bytes as text. */
async function fill(service: Awaited<ReturnType<typeof startService>>, bytes: number) {
  const name = 'x'.repeat(1_000)
  const plants = Array.from({ length: bytes / 1_000 }, (_, id) => ({ id: BigInt(id), name }))
  await service.store.importPlants(plants, 'keep')
}

/** Sends the head of a request for an upgrade, and its body only after the answer. */
async function sendInParts(url: string) {
  const connection = connectTo(url)
  const { socket, received } = connection
  const head = { method: 'POST', path: '/healthz', headers: { ...upgrade, 'Content-Length': '1' } }
  socket.write(toBytes(head))
  await waitUntil(() => received().endsWith('}'), 'the answer to the head')
  socket.write('x')
  return connection
}

describe('a request for an upgrade', () => {
  it('loses no request that follows it, however many come before it', async () => {
    const service = await startService(memory)
    const socket = openSocket(service.url)
    const get = (headers = {}) =>
      toBytes({ path: '/plants/1', headers: { ...authorized, ...headers } })
    const last = toBytes({ path: '/healthz', headers: { Connection: 'close' } })
    socket.write(Buffer.concat([get(), get(), get(), get(upgrade), get(), last]))
    const received = await text(socket)
    assert.deepEqual(statusesOf(received), ['404', '404', '404', '404', '404', '200'])
  })

  it('loses no request that follows its body, however slowly that is read', async () => {
    const service = await startService(memory, { timeouts: { keepAliveTimeoutMs: 500 } })
    // The token is known by then: the body is read as it comes.
    await service.call({ path: '/plants/1' })
    const headers = { ...json, ...upgrade, 'Transfer-Encoding': 'chunked' }
    const chunks = [...'{"id":1,"name":"of more bytes than are read in a turn"}']
    const body = `${chunks.map((byte) => `1\r\n${byte}\r\n`).join('')}0\r\n\r\n`
    const last = toBytes({ path: '/plants/1', headers: { ...authorized, Connection: 'close' } })
    const socket = openSocket(service.url)
    socket.write(Buffer.concat([toBytes({ method: 'POST', path: '/plants', headers, body }), last]))
    assert.deepEqual(statusesOf(await text(socket)), ['200', '200'])
  })

  it('may come again and again on one connection', async () => {
    const warnings: string[] = []
    const warn = ({ message }: Error) => warnings.push(message)
    process.on('warning', warn)
    const service = await startService(memory)
    const socket = openSocket(service.url)
    const last = toBytes({ path: '/healthz', headers: { Connection: 'close' } })
    const again = toBytes({ path: '/healthz', headers: upgrade })
    socket.write(Buffer.concat([...Array(20).fill(again), last]))
    assert.equal(statusesOf(await text(socket))?.length, 21)
    process.off('warning', warn)
    assert.deepEqual(warnings, [])
  })

  it('may read an export slowly', async () => {
    const service = await startService(memory, { timeouts: { exportMs: 10_000 } })
    await fill(service, 9_000_000)
    const { socket, received } = connectTo(service.url)
    const headers = { ...authorized, ...upgrade }
    socket.write(toBytes({ path: '/plants.ndjson', headers }))
    await waitUntil(() => received().length > 0, 'the start of the export')
    socket.pause()
    // The service fills the buffers of the connection, and waits.
    let before = -1
    await waitUntil(async () => {
      const isFull = socket.bytesRead === before
      before = socket.bytesRead
      for (let count = 0; count < 20; count++) await service.call({ path: '/healthz' })
      return isFull
    }, 'full buffers')
    socket.resume()
    await waitUntil(() => received().endsWith('\r\n0\r\n\r\n') || socket.closed, 'the end')
    assert.equal(received().match(/"id":/g)?.length, 9_000)
  })

  it('drops a client that does not read its answer', async () => {
    const service = await startService(memory, {
      timeouts: { stallTimeoutMs: 200, shutdownMs: 60_000 },
    })
    await fill(service, 900_000)
    const socket = openSocket(service.url).pause()
    const headers = { ...authorized, ...upgrade }
    const get = toBytes({ path: '/plants?limit=1000', headers: authorized })
    const last = toBytes({ path: '/plants?limit=1000', headers })
    socket.write(Buffer.concat([...Array(10).fill(get), last]))
    await service.call({ path: '/healthz' })
    // A connection that stays would be cut at the end.
    assert.equal(await service.close(), 0)
  })

  it('leaves an idle connection that ends after the usual time, without a word', async () => {
    const service = await startService(memory, {
      timeouts: { headersTimeoutMs: 100, requestTimeoutMs: 200, keepAliveTimeoutMs: 500 },
    })
    const { socket, received } = connectTo(service.url)
    socket.write(toBytes({ path: '/healthz', headers: upgrade }))
    await waitUntil(() => socket.closed, 'the end of the connection')
    assert.deepEqual(statusesOf(received()), ['200'])
  })

  it('leaves an idle connection, too, when its body comes after its answer', async () => {
    const service = await startService(memory, { timeouts: { keepAliveTimeoutMs: 500 } })
    const { socket, received } = await sendInParts(service.url)
    socket.write(toBytes({ path: '/healthz' }))
    await waitUntil(() => socket.closed, 'the end of the connection')
    assert.deepEqual(statusesOf(received()), ['405', '200'])
  })

  it('leaves no layer between the service and the connection', async () => {
    const service = await startService(memory, { env: { LOG_LEVEL: 'debug' } })
    const { socket, received } = await sendInParts(service.url)
    socket.write(toBytes({ path: '/healthz' }))
    await waitUntil(() => received().endsWith('"ok"}'), 'the second answer')
    const answered = () => service.log.filter((line) => line.includes('"answered"'))
    await waitUntil(() => answered().length === 2, 'both lines of the log')
    for (const line of answered()) assert.equal(JSON.parse(line).client, '127.0.0.1')
  })

  it('delays no shutdown when its client leaves', async () => {
    const service = await startService(memory, { timeouts: { shutdownMs: 60_000 } })
    const { socket } = await sendInParts(service.url)
    socket.end()
    assert.equal(await service.close(), 0)
  })

  it('delays no shutdown when its client leaves before all of its body has come', async () => {
    const service = await startService(memory, { timeouts: { shutdownMs: 20_000 } })
    const headers = { ...json, ...upgrade, 'Content-Length': '2' }
    openSocket(service.url).end(toBytes({ method: 'POST', path: '/plants', headers, body: '{' }))
    await service.call({ path: '/healthz' })
    assert.equal(await service.close(), 0)
  })
})
