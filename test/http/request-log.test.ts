import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { stopClock } from '../support/clock.ts'
import { sqlite } from '../support/engines.ts'
import { startService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { exchange } from '../support/wire.ts'

interface Line {
  readonly msg: string
  readonly error?: number
  readonly requests?: number
  readonly [field: string]: unknown
}

const memory = 'sqlite::memory:'
const toLines = (log: readonly string[]): Line[] => log.map((line) => JSON.parse(line))

/** Waits for the last line with this message, which is written when an answer is sent. */
async function findLine(log: readonly string[], message: string): Promise<Line> {
  const find = () => toLines(log).findLast(({ msg }) => msg === message)
  await waitUntil(() => find() !== undefined, `the log says "${message}"`)
  return find() as Line
}

describe('the log of requests', () => {
  it('shows the token, route, status, error number, client and duration', async () => {
    const service = await startService(memory, { env: { LOG_LEVEL: 'debug' } })
    await service.call({ path: '/plants/404', headers: { 'X-Forwarded-For': '9.9.9.9' } })
    const line = await findLine(service.log, 'answered')
    assert.equal(line.method, 'GET')
    assert.equal(line.path, '/plants/{id}')
    assert.equal(line.statusCode, 404)
    assert.equal(line.error, 40401)
    assert.match(String(line.tokenId), /^operator/)
    assert.equal(line.client, '127.0.0.1')
    assert.match(String(line.ms), /^\d+(\.\d{1,3})?$/)
  })

  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const parentId = 'b7ad6b7169203331'
  const traceparents: [value: string, traceId: string | undefined][] = [
    [`00-${traceId}-${parentId}-01`, traceId],
    [`cc-${traceId}-${parentId}-01-what-comes-later`, traceId],
    [`ff-${traceId}-${parentId}-01`, undefined],
    [`00-${'0'.repeat(32)}-${parentId}-01`, undefined],
    [`00-${traceId}-${'0'.repeat(16)}-01`, undefined],
    [`00-${traceId.toUpperCase()}-${parentId}-01`, undefined],
    [`00-${traceId}-${parentId}-01\t{"a":1}`, undefined],
  ]
  it('shows the trace that a traceparent names, and ignores one that is malformed', async () => {
    const service = await startService(memory, { env: { LOG_LEVEL: 'debug' } })
    for (const [value, expected] of traceparents) {
      const { headers } = await service.call({ path: '/plants', headers: { traceparent: value } })
      const id = headers.get('x-request-id')
      const find = () => toLines(service.log).find(({ requestId }) => requestId === id)
      await waitUntil(() => find() !== undefined, 'the request is in the log')
      assert.equal(find()?.traceId, expected, value)
      assert.equal(find()?.parentId, expected && parentId, value)
    }
  })

  it('shows the trace of a request that met a fault of ours', async () => {
    const store = await sqlite.open(await sqlite.newUrl())
    const fail = () => Promise.reject(new TypeError('a bug'))
    const service = await startService(memory, { store: { ...store, listPlants: fail } })
    const headers = { traceparent: `00-${traceId}-${parentId}-00` }
    await service.call({ path: '/plants', headers })
    const line = toLines(service.log).find(({ error }) => error === 50000)
    assert.equal(line?.traceId, traceId)
  })

  it('shows an unknown path without tokens, and requests that the parser refuses', async () => {
    const service = await startService(memory, { env: { LOG_LEVEL: 'debug' } })
    await service.call({ path: `/nowhere/plst_${'0'.repeat(36)}${'/x'.repeat(500)}` })
    const { path } = await findLine(service.log, 'answered')
    assert.equal(path, `/nowhere/plst_000…${'/x'.repeat(91)}`)
    await exchange(service.url, Buffer.from('GARBAGE\r\n\r\n'))
    const refused = await findLine(service.log, 'refused')
    assert.equal(refused.error, 40000)
    assert.equal(refused.client, '127.0.0.1')
  })

  for (const [trusted, expected] of [
    ['1', '3.3.3.3'],
    ['2', '2.2.2.2'],
  ] as const) {
    it(`believes the addresses of ${trusted} proxies, and no further one`, async () => {
      const env = { LOG_LEVEL: 'debug', TRUST_PROXY: trusted }
      const service = await startService(memory, { env })
      const headers = { 'X-Forwarded-For': '1.1.1.1, 2.2.2.2, 3.3.3.3' }
      await service.call({ path: '/healthz', headers })
      assert.equal((await findLine(service.log, 'answered')).client, expected)
    })
  }

  it('reports a full disk at once, and then once a minute with the requests that met it', async (t) => {
    const clock = stopClock(t)
    const { store } = await sqlite.openWithFault('disk full')
    const service = await startService(memory, { store })
    for (let id = 10; id < 13; id++) {
      if (id === 12) clock.advance(60_000)
      await service.create(`{"id":${id},"name":"${'x'.repeat(8_000)}"}`)
    }
    const lines = toLines(service.log).filter(({ error }) => error === 50700)
    const counts = lines.map(({ requests }) => requests)
    assert.deepEqual(counts, [1, 2])
  })
})
