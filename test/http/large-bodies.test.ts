import assert from 'node:assert/strict'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { scopes } from '../../src/contract/scopes.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { sqlite } from '../support/engines.ts'
import { parseMetrics } from '../support/metrics.ts'
import { releaseAfterTest } from '../support/release.ts'
import { json, startService } from '../support/service.ts'
import { waitForStall } from '../support/upload.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'

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
    const { token } = await issueToken(store, { name: 'test', scopes, lifetimeMs: undefined })
    const headers = { ...json, Authorization: `Bearer ${token}`, 'Transfer-Encoding': 'chunked' }
    const socket = openSocket(service.url)
    socket.write(toBytes({ method: 'POST', path: '/plants', headers }))
    // Far more than a service and the buffers of a connection hold.
    const [part, parts] = [`186a0\r\n${' '.repeat(100_000)}\r\n`, 400]
    let taken = 0
    const send = () => {
      socket.write(part, (error) => {
        if (error || ++taken === parts) return
        send()
      })
    }
    send()
    await waitForStall(service, () => taken)
    assert.ok(taken < parts / 2, `${taken} parts were taken`)
    gate.resolve()
    socket.setEncoding('latin1')
    assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 413 /)
  })

  it('that is refused may be sent to its end before its client reads the last answer', async () => {
    const service = await startService('sqlite::memory:')
    const headers = { ...json, Connection: 'close' }
    const body = Buffer.alloc(8_000_000)
    const socket = openSocket(service.url).pause()
    const sent = once(socket, 'finish')
    socket.end(toBytes({ method: 'POST', path: '/plants', headers, body }))
    await sent
    assert.match(await text(socket), /^HTTP\/1\.1 413 /)
  })

  it('is stored to the last byte, also after another request and beside refused ones', async () => {
    const service = await startService('sqlite::memory:')
    const health = toBytes({ path: '/healthz' })
    const last = toBytes({ path: '/healthz', headers: { Connection: 'close' } })
    const toPost = (id: number, headers: Record<string, string>) => {
      const body = `{"id":${id},"name":"${'x'.repeat(8_000)}"}`
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
      assert.equal(stored?.name.length, 8_000)
    }
  })
})

describe('a body that is not as long as it says', () => {
  const plant = '{"id":1,"name":"x"}'
  const toHead = (headers: Record<string, string>) =>
    toBytes({ method: 'POST', path: '/plants', headers: { ...json, ...headers } })
  const chunked = { 'Transfer-Encoding': 'chunked' }
  const part = `64\r\n${' '.repeat(100)}\r\n`

  /** What a client sends, then what it sends again and again or that it ends, and the errors. */
  const cases: [title: string, sent: string, next: 'end' | 'wait' | { again: string }, number[]][] =
    [
      [
        'is shorter, and the client ends',
        toHead({ 'Content-Length': '99' }) + plant,
        'end',
        [40000],
      ],
      [
        'is shorter, and the client waits',
        toHead({ 'Content-Length': '99' }) + plant,
        'wait',
        [40800],
      ],
      ['is longer', toHead({ 'Content-Length': '9' }) + plant, 'wait', [40001, 40000]],
      ['has a last chunk that never comes', toHead(chunked) + part, 'wait', [40800]],
      ['has chunks without end', toHead(chunked) + part, { again: part }, [41300]],
      ['ends within a chunk', `${toHead(chunked)}64\r\n${plant}`, 'end', [40000]],
    ]
  for (const [title, sent, next, errors] of cases) {
    it(`gets ${errors} and leaves nothing behind: ${title}`, async () => {
      const isEndless = typeof next === 'object'
      const timeouts = isEndless ? {} : { headersTimeoutMs: 200, requestTimeoutMs: 400 }
      const service = await startService('sqlite::memory:', { timeouts })
      const socket = openSocket(service.url)
      const received = text(socket)
      socket.write(sent)
      if (next === 'end') socket.end()
      const sending = isEndless && setInterval(() => socket.write(next.again), 1)
      if (sending) releaseAfterTest(() => clearInterval(sending))
      const found = (await received).matchAll(/(?<="error":)\d+/g)
      assert.deepEqual([...found].map(Number), errors)
      assert.equal((await service.call({ path: '/plants/1' })).status, 404)
      const countConnections = async () => {
        const { body } = await service.call({ path: '/metrics' })
        return parseMetrics(body).get('plant_store_http_connections')
      }
      await waitUntil(async () => (await countConnections()) === 1, 'its connection is gone')
    })
  }
})
