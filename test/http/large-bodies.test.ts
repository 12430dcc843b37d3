import assert from 'node:assert/strict'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { limits } from '../../src/contract/limits.ts'
import { sqlite } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { startService } from '../support/service.ts'
import { waitForStall } from '../support/upload.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'
import { post } from './scenarios/scenario.ts'

describe('a large body', () => {
  it('of many small chunks that nobody reads is given up after the answer', async () => {
    const service = await startService('sqlite::memory:')
    for (const request of [{ method: 'POST', path: '/plants' }, { path: '/healthz' }]) {
      const headers = { 'Transfer-Encoding': 'chunked' }
      const body = `${'1\r\nx\r\n'.repeat(30_000)}0\r\n\r\n`
      const next = toBytes({ path: '/nowhere', headers: { Connection: 'close' } })
      const socket = openSocket(service.url)
      socket.write(Buffer.concat([toBytes({ ...request, headers, body }), next]))
      const received = await text(socket)
      assert.match(received, request.path === '/healthz' ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 401 /)
      assert.doesNotMatch(received, /HTTP\/1\.1 404 /)
    }
  })

  it('in chunks stalls its sender while the token is looked up', async () => {
    const store = await sqlite.open(await sqlite.newUrl())
    const gate = Promise.withResolvers<void>()
    releaseAfterTest(gate.resolve)
    const findToken: typeof store.findToken = (hash) =>
      gate.promise.then(() => store.findToken(hash))
    const service = await startService('sqlite::memory:', { store: { ...store, findToken } })
    const { headers: own } = await service.issue()
    const socket = openSocket(service.url)
    socket.write(toBytes(post('', { ...own, 'Transfer-Encoding': 'chunked' })))
    // Far more than a service and the buffers of a connection hold.
    const [part, parts] = [`186a0\r\n${' '.repeat(100_000)}\r\n`, 400]
    let taken = 0
    const send = () => {
      socket.write(part, (error) => {
        if (!error && ++taken < parts) send()
      })
    }
    send()
    await waitForStall(service, () => taken)
    assert.ok(taken < parts / 2, `${taken} parts were taken`)
    gate.resolve()
    socket.setEncoding('latin1')
    assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 413 /)
  })

  it('in chunks that were too small for a moment is read on', async () => {
    const service = await startService('sqlite::memory:')
    const { headers: own } = await service.issue()
    // A token that is not known yet waits at the gate, so that the body comes first.
    const head = toBytes(post('', { ...own, 'Transfer-Encoding': 'chunked' }))
    const small = '1\r\n \r\n'.repeat(limits.bodyChunks + 5)
    const large = `1388\r\n${' '.repeat(5_000)}\r\n`
    const socket = openSocket(service.url).setEncoding('latin1')
    socket.write(Buffer.concat([head, Buffer.from(small + large)]))
    await service.call({ path: '/healthz' })
    socket.write('0\r\n\r\n')
    assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 400 /)
  })

  it('that is refused may be sent to its end before its client reads the last answer', async () => {
    const service = await startService('sqlite::memory:')
    const socket = openSocket(service.url).pause()
    const sent = once(socket, 'finish')
    socket.end(toBytes(post(Buffer.alloc(8_000_000), { Connection: 'close' })))
    await sent
    assert.match(await text(socket), /^HTTP\/1\.1 413 /)
  })
})

describe('a body whose client ends its side within it', () => {
  const plant = '{"id":1,"name":"x"}'
  for (const [framing, bytes] of [
    [{ 'Content-Length': '99' }, plant],
    [{ 'Transfer-Encoding': 'chunked' }, `64\r\n${plant}`],
  ] as const) {
    it(`is refused, and leaves nothing behind: ${JSON.stringify(framing)}`, async () => {
      const service = await startService('sqlite::memory:')
      const head = toBytes(post('', framing))
      const received = await text(openSocket(service.url).end(head + bytes))
      assert.match(received, /^HTTP\/1\.1 400 [^\0]*"error":40000,/)
      assert.equal((await service.call({ path: '/plants/1' })).status, 404)
      const isGone = async () => (await service.countConnections()) === 1
      await waitUntil(isGone, 'its connection is gone')
    })
  }
})
