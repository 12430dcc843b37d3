import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { authorized, json, startService } from '../support/service.ts'
import { openSocket, toBytes } from '../support/wire.ts'

describe('the pace at which large bodies are read', () => {
  it('holds for bodies that nobody reads, also those of reads that are streamed', async () => {
    const service = await startService('sqlite::memory:')
    const count = 20
    const bodyBytes = 1_000_000
    const accepted = new Set<Socket>()
    const note = (message: unknown) => accepted.add((message as { socket: Socket }).socket)
    subscribe('http.server.request.start', note)
    const body = Buffer.alloc(bodyBytes)
    const head = toBytes({ method: 'HEAD', path: '/plants.csv', headers: authorized, body })
    const sockets = Array.from({ length: count }, () => openSocket(service.url))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    // The answer on a later connection shows that these are accepted. Their bytes come at once.
    await service.call({ path: '/plants' })
    for (const socket of sockets) socket.write(head)
    let before = 0
    let most = 0
    while (before < count * bodyBytes) {
      await nextTurn()
      const read = [...accepted].reduce((sum, { bytesRead }) => sum + bytesRead, 0)
      most = Math.max(most, read - before)
      before = read
    }
    unsubscribe('http.server.request.start', note)
    assert.ok(most < (count * bodyBytes) / 5, `${most} bytes were read in one turn`)
  })

  it('gives up a body of many small chunks that nobody reads, after the answer', async () => {
    const service = await startService('sqlite::memory:')
    for (const request of [{ method: 'POST', path: '/plants' }, { path: '/healthz' }]) {
      const headers = { 'Transfer-Encoding': 'chunked' }
      const body = `${'1\r\nx\r\n'.repeat(3_000)}0\r\n\r\n`
      const next = toBytes({ path: '/nowhere', headers: { Connection: 'close' } })
      const socket = openSocket(service.url)
      socket.write(Buffer.concat([toBytes({ ...request, headers, body }), next]))
      const received = await text(socket)
      assert.match(received, request.path === '/healthz' ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 401 /)
      assert.doesNotMatch(received, /HTTP\/1\.1 404 /)
    }
  })

  it('lets a client send all of a refused body before it reads the last answer', async () => {
    const service = await startService('sqlite::memory:')
    const headers = { ...json, Connection: 'close' }
    const body = Buffer.alloc(8_000_000)
    const socket = openSocket(service.url).pause()
    const sent = once(socket, 'finish')
    socket.end(toBytes({ method: 'POST', path: '/plants', headers, body }))
    await sent
    assert.match(await text(socket), /^HTTP\/1\.1 413 /)
  })

  it('keeps every byte, also of bodies after another request and of refused ones', async () => {
    const service = await startService('sqlite::memory:')
    const health = toBytes({ path: '/healthz' })
    const last = toBytes({ path: '/healthz', headers: { Connection: 'close' } })
    const toPost = (id: number, headers: Record<string, string>) => {
      const body = `{"id":${id},"name":"${'x'.repeat(1_000_000)}"}`
      return toBytes({ method: 'POST', path: '/plants', headers, body })
    }
    const answers = await Promise.all(
      Array.from({ length: 40 }, async (_, at) => {
        const isRefused = at % 4 === 0
        const headers = isRefused ? { ...json, 'Content-Type': 'text/plain' } : json
        const socket = openSocket(service.url)
        socket.write(Buffer.concat([at % 2 === 0 ? health : Buffer.alloc(0), toPost(at, headers)]))
        socket.write(last)
        let received = ''
        for await (const chunk of socket.setEncoding('latin1')) {
          received = (received + chunk).replaceAll(/x+/g, 'x')
        }
        return received.match(/(?<=HTTP\/1\.1 )\d+/g)
      }),
    )
    for (const [at, statuses] of answers.entries()) {
      const first = at % 2 === 0 ? ['200'] : []
      assert.deepEqual(statuses, [...first, at % 4 === 0 ? '415' : '200', '200'])
    }
    for (const at of answers.keys()) {
      if (at % 4 === 0) continue
      const stored = await service.store.getPlant(BigInt(at))
      assert.equal(stored?.name.length, 1_000_000)
    }
  })
})
