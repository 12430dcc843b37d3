import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { defaultTimeouts } from '../../src/contract/limits.ts'
import { countPlants } from '../faults/lab/plant-count.ts'
import { engines, sqlite } from '../support/engines.ts'
import { lowerLimit } from '../support/limits.ts'
import { releaseAfterTest } from '../support/release.ts'
import { startService } from '../support/service.ts'
import { startUpload, toLines, toStored, waitForStall } from '../support/upload.ts'
import { waitUntil } from '../support/wait.ts'
import { exchange, openSocket, toBytes } from '../support/wire.ts'
import { get, upload as toUpload } from './scenarios/scenario.ts'

type Headers = Record<string, string>

const underWay = 'plant_store_http_requests_in_flight{operation="importPlantsAsNdjson"}'
/** What comes before the body of an import that is sent in chunks. */
const chunkedHead = toBytes(toUpload('ndjson', '', { 'Transfer-Encoding': 'chunked' }))

function countTimers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
}

for (const engine of engines) {
  describe(`an import on ${engine.name}`, () => {
    it('is read as it comes: a store that does not answer stalls its sender', async () => {
      const url = await engine.newUrl()
      const store = await engine.open(url)
      const service = await startService(url, { store })
      const upload = startUpload(service.url, 'ndjson')
      const release = await engine.block(url)
      let taken = 0
      const part = toLines(0, 10, 'x'.repeat(8_000))
      // Far more than a service and the buffers of a connection hold.
      const parts = 300
      const sending = (async () => {
        for (let count = 0; count < parts; count++) {
          await upload.send(part)
          taken++
        }
      })()
      await waitForStall(service, () => taken)
      assert.ok(taken < parts / 2, `${taken} parts were taken`)
      await release()
      await sending
      upload.end()
      const { status, lines, stored, alreadyThere } = await upload.answer
      assert.deepEqual({ status, lines }, { status: 200, lines: parts * 10 })
      assert.equal(stored + alreadyThere, lines)
      assert.equal(await countPlants(store), 10)
    })

    it('lets others create plants meanwhile', async () => {
      const service = await startService(await engine.newUrl())
      const upload = startUpload(service.url, 'ndjson')
      let isOver = false
      const sending = (async () => {
        await upload.send(toLines(0, 8_000))
        upload.end()
        const answer = await upload.answer
        isOver = true
        return answer
      })()
      let created = 0
      while (!isOver) {
        const { status } = await service.create(`{"id":${--created},"name":"x"}`)
        assert.equal(status, 200)
      }
      assert.equal((await sending).stored, 8_000)
      assert.ok(created < -5, `${-created} creates beside the import`)
    })

    it('ends when its token is revoked, and says what is stored', async () => {
      const service = await startService(await engine.newUrl())
      const { store } = service
      const { headers, record } = await service.issue()
      const upload = startUpload(service.url, 'ndjson', { headers })
      await upload.send(toLines(0, 1_500))
      await waitUntil(async () => (await countPlants(store)) >= 500, 'the first plants')
      await store.revokeToken(record.id, Date.now())
      const { status, error, message } = await upload.answer
      assert.deepEqual([status, error], [401, 40101])
      assert.equal(toStored(message), await countPlants(store), message)
      await upload.send(toLines(5_000, 1_000))
      upload.end()
      assert.equal((await service.call({ path: '/plants/5000' })).status, 404)
    })

    it('ends with a shutdown, and says what is stored', async () => {
      const url = await engine.newUrl()
      const timeouts = { shutdownMs: 400, idleGraceMs: 60_000 }
      const service = await startService(url, { timeouts })
      const witness = await engine.open(url)
      // It keeps the grace from ending before the metrics are read.
      const client = openSocket(service.url)
      const upload = startUpload(service.url, 'ndjson')
      await upload.send(toLines(0, 1_500))
      await waitUntil(async () => (await countPlants(witness)) >= 500, 'the first plants')
      const closed = service.close()
      const { status, error, message } = await upload.answer
      assert.deepEqual([status, error], [503, 50300])
      assert.equal(await service.sample('plant_store_refusals_total{reason="shutdown"}'), 1)
      client.destroy()
      upload.request.destroy()
      await closed
      assert.equal(toStored(message), await countPlants(witness), message)
    })

    it('keeps the lines before the end of a body that is cut short, and no half line', async () => {
      const service = await startService(await engine.newUrl())
      // By its length, and in chunks.
      for (const headers of [{ 'Content-Length': '100000' }, {}]) {
        const upload = startUpload(service.url, 'ndjson', { headers })
        await upload.send(`${toLines('Content-Length' in headers ? 0 : 100, 3)}{"id":77,"name":"ha`)
        upload.request.socket?.end()
        const { status, error, message } = await upload.answer
        assert.deepEqual([status, error], [400, 40000])
        assert.match(message, /ended before the request did\. Imported before that: 3 stored\./)
      }
      assert.equal(await countPlants(service.store), 6)
    })
  })
}

describe('an import', () => {
  it('may take longer than any other request, as long as its body comes', async () => {
    // A busy machine may send nothing for a second.
    const timeouts = { headersTimeoutMs: 200, requestTimeoutMs: 2_000 }
    const service = await startService('sqlite::memory:', { timeouts })
    const upload = startUpload(service.url, 'ndjson')
    const startedAt = performance.now()
    const part = toLines(0, 10, 'x'.repeat(8_000))
    let parts = 0
    // Node checks the times of requests every tenth of a second here.
    while (performance.now() - startedAt < 1.5 * timeouts.requestTimeoutMs) {
      await upload.send(part)
      parts++
    }
    upload.end()
    assert.equal((await upload.answer).lines, parts * 10)
  })

  it('of a byte order mark that comes in two pieces is blank', async () => {
    const service = await startService('sqlite::memory:')
    const upload = startUpload(service.url, 'ndjson')
    await upload.send(Buffer.of(0xef))
    await waitUntil(async () => (await service.sample(underWay)) === 1, 'the import')
    await upload.send(Buffer.of(0xbb, 0xbf))
    upload.end()
    assert.equal((await upload.answer).error, 40002)
  })

  it('leaves nothing behind that would hold up a shutdown, whatever its sender does', async () => {
    const before = countTimers()
    const service = await startService('sqlite::memory:', { timeouts: { shutdownMs: 400 } })
    const socket = openSocket(service.url)
    socket.write(chunkedHead)
    await waitUntil(async () => (await service.sample(underWay)) === 1, 'the import')
    await service.close()
    const closedAt = performance.now()
    await waitUntil(() => countTimers() <= before, 'no timer that holds up the end')
    assert.ok(performance.now() - closedAt < defaultTimeouts.requestTimeoutMs / 2)
  })

  it('is one of four at a time, and one of two of its token', async () => {
    const service = await startService('sqlite::memory:')
    const newHeaders = async () => (await service.issue()).headers
    const begin = (headers: Headers) => startUpload(service.url, 'csv', { headers })
    /** Whether another import is refused, with these words. */
    const isRefused = async (headers: Headers, words: RegExp) => {
      const next = begin(headers)
      next.end()
      const { error, message } = await next.answer
      return error === 50300 && words.test(message)
    }
    const [one, other, third] = await Promise.all([newHeaders(), newHeaders(), newHeaders()])
    const uploads = [begin(one), begin(one)]
    await waitUntil(() => isRefused(one, /^This token runs 2 imports/), 'two imports')
    uploads.push(begin(other), begin(other))
    await waitUntil(() => isRefused(third, /^The service runs 4 imports/), 'four imports')
    uploads[0]?.end()
    assert.equal((await uploads[0]?.answer)?.error, 40002)
    const { body } = await service.call(toUpload('csv', 'id,name\n1,a\n'))
    assert.equal(JSON.parse(body).stored, 1)
  })

  it('waits while the queue of the store is full', async () => {
    const store = await sqlite.open(await sqlite.newUrl())
    let looks = 0
    const isFull = () => looks++ > 0 && looks < 10
    const service = await startService('sqlite::memory:', { store: { ...store, isFull } })
    const { body } = await service.call(toUpload('ndjson', toLines(0, 1)))
    assert.equal(JSON.parse(body).stored, 1)
    assert.ok(looks >= 10)
  })

  it('that ends early leaves nothing behind on its connection', async (test) => {
    lowerLimit(test, 'refusedLines', 10)
    const service = await startService('sqlite::memory:')
    const warnings: Error[] = []
    const note = (warning: Error) => warnings.push(warning)
    process.on('warning', note)
    releaseAfterTest(() => void process.off('warning', note))
    const socket = openSocket(service.url)
    for (let round = 0; round < 12; round++) {
      socket.write(chunkedHead)
      socket.write(`28\r\n${'x\n'.repeat(20)}\r\n`)
      const [answer] = await once(socket, 'data')
      assert.match(String(answer), /^HTTP\/1\.1 200 /)
      socket.write('0\r\n\r\n')
    }
    assert.deepEqual(warnings, [])
  })
})

describe('the connection of an import', () => {
  const long = `{"id":1,"name":"${'x'.repeat(3_000_000)}"}\n${toLines(2, 10)}`
  const cases: [status: number, title: string, body: string | Buffer, headers: Headers][] = [
    [200, 'success', toLines(7, 1), {}],
    [200, 'line that is too long', long, {}],
    [415, 'other media type', toLines(1, 100_000), { 'Content-Type': 'text/csv' }],
    [400, 'damaged gzip', Buffer.alloc(300_000, 'x'), { 'Content-Encoding': 'gzip' }],
    [401, 'missing token', toLines(1, 100_000), { Authorization: '' }],
    [400, 'wrong parameter', toLines(1, 100_000), { query: '?on-conflict=no' }],
  ]
  for (const [status, title, body, { query = '', ...headers }] of cases) {
    it(`answers the next request after ${title}`, async () => {
      const service = await startService('sqlite::memory:')
      await service.create('{"id":7,"name":"Fern 7"}')
      const both = [toUpload('ndjson', body, headers, query), get('/plants/7')].map(toBytes)
      const answers = await exchange(service.url, Buffer.concat(both), { answers: 2 })
      const statuses = answers.map((answer) => answer.status)
      assert.deepEqual(statuses, [status, 200])
    })
  }

  it('is cut in time when its client continues sending after a refusal', async () => {
    const timeouts = { headersTimeoutMs: 100, requestTimeoutMs: 200 }
    const service = await startService('sqlite::memory:', { timeouts })
    const socket = openSocket(service.url)
    const headers = { 'Content-Encoding': 'gzip', 'Content-Length': '100000000' }
    socket.write(toBytes(toUpload('ndjson', 'x'.repeat(2_000_000), headers)))
    const [answer] = await once(socket, 'data')
    assert.match(String(answer), /^HTTP\/1\.1 400 /)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    const sending = setInterval(() => socket.write('x'), 10)
    releaseAfterTest(() => clearInterval(sending))
    await closed
  })

  it('is asked to continue only when the import is accepted', async () => {
    const service = await startService('sqlite::memory:')
    const headers = { Expect: '100-continue' }
    const upload = startUpload(service.url, 'ndjson', { headers })
    await once(upload.request, 'continue')
    await upload.send(toLines(0, 1))
    upload.end()
    assert.equal((await upload.answer).stored, 1)
    const refused = startUpload(service.url, 'csv', {
      headers: { ...headers, 'Content-Type': 'application/json' },
    })
    let isContinued = false
    refused.request.on('continue', () => {
      isContinued = true
    })
    assert.equal((await refused.answer).error, 41500)
    assert.equal(isContinued, false)
  })

  it('gets the answer of the import to broken framing, with what was stored', async () => {
    const service = await startService('sqlite::memory:')
    const chunk = toLines(0, 2)
    const headers = { 'Transfer-Encoding': 'chunked', Expect: '100-continue' }
    const socket = openSocket(service.url).setEncoding('latin1')
    socket.write(toBytes(toUpload('ndjson', '', headers)))
    // The import has begun.
    await once(socket, 'data')
    socket.write(`${chunk.length.toString(16)}\r\n${chunk}\r\nzz\r\n`)
    const [answer] = await once(socket, 'data')
    assert.match(answer, /^HTTP\/1\.1 400 .*X-Request-Id: .*"error":40000.*: 2 stored/s)
  })
})
