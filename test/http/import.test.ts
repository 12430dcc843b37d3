import assert from 'node:assert/strict'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { defaultTimeouts } from '../../src/contract/limits.ts'
import { scopes } from '../../src/contract/scopes.ts'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../src/store/sqlite/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { countPlants } from '../faults/lab/plant-count.ts'
import { engines, sqlite } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { lowerLimit } from '../support/limits.ts'
import { releaseAfterTest } from '../support/release.ts'
import { authorized, startService } from '../support/service.ts'
import { closeAfterTest } from '../support/stores.ts'
import { startUpload, toLines, toStored, waitForStall } from '../support/upload.ts'
import { waitUntil } from '../support/wait.ts'
import { exchange, openSocket, toBytes } from '../support/wire.ts'

type Headers = Record<string, string>

/** What comes before the body of an import that is sent in chunks. */
const chunkedHead = toBytes({
  method: 'POST',
  path: '/plants.ndjson',
  headers: {
    ...authorized,
    'Content-Type': 'application/x-ndjson',
    'Transfer-Encoding': 'chunked',
  },
})

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
      const store = await engine.open(await engine.newUrl())
      const service = await startService('sqlite::memory:', { store })
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
      const store = await engine.open(await engine.newUrl())
      const service = await startService('sqlite::memory:', { store })
      const request = { name: 'test', scopes, lifetimeMs: undefined }
      const { token, record } = await issueToken(store, request)
      const upload = startUpload(service.url, 'ndjson', {
        headers: { Authorization: `Bearer ${token}` },
      })
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
      const service = await startService(url, { timeouts: { shutdownMs: 400 } })
      const witness = await engine.open(url)
      const upload = startUpload(service.url, 'ndjson')
      await upload.send(toLines(0, 1_500))
      await waitUntil(async () => (await countPlants(witness)) >= 500, 'the first plants')
      const closed = service.close()
      const { status, error, message } = await upload.answer
      assert.deepEqual([status, error], [503, 50300])
      await closed
      assert.equal(toStored(message), await countPlants(witness), message)
    })

    it('keeps the lines before the end of a body that is cut short, and no half line', async () => {
      const store = await engine.open(await engine.newUrl())
      const service = await startService('sqlite::memory:', { store })
      for (const framing of ['Content-Length', 'chunks']) {
        const isLong = framing === 'Content-Length'
        const upload = startUpload(service.url, 'ndjson', {
          ...(isLong && { headers: { 'Content-Length': '100000' } }),
        })
        await upload.send(`${toLines(isLong ? 0 : 100, 3)}{"id":77,"name":"ha`)
        upload.request.socket?.end()
        const { status, error, message } = await upload.answer
        assert.deepEqual([status, error], [400, 40000])
        assert.match(message, /ended before the request did\. Imported before that: 3 stored\./)
      }
      assert.equal(await countPlants(store), 6)
    })

    it('lists the first thousand refused lines, and counts all', async () => {
      const service = await startService(await engine.newUrl())
      const upload = startUpload(service.url, 'csv')
      await upload.send('id,name\n')
      for (let part = 0; part < 3; part++) await upload.send('x,y\n1,y\n1,z\n'.repeat(400))
      upload.end()
      const answer = await upload.answer
      assert.equal(answer.lines, 3_600)
      assert.equal(answer.stored, 1)
      assert.equal(answer.alreadyThere, 1_199)
      assert.equal(answer.conflicts, 1_200)
      assert.equal(answer.invalid, 1_200)
      assert.equal(answer.refusedInAll, 2_400)
      assert.equal(answer.refused.length, 1_000)
      assert.equal(answer.refused.at(-1)?.line, 1_501)
    })

    it('keeps the order of lines with one id', async () => {
      const service = await startService(await engine.newUrl())
      const upload = startUpload(service.url, 'ndjson', { query: '?on-conflict=replace' })
      let lines = ''
      for (let turn = 0; turn < 3_000; turn++) lines += `{"id":${turn % 7},"name":"${turn}"}\n`
      await upload.send(lines)
      upload.end()
      assert.equal((await upload.answer).replaced, 2_993)
      const { body } = await service.call({ path: '/plants' })
      assert.deepEqual(
        (JSON.parse(body) as { name: string }[]).map(({ name }) => Number(name)).sort(),
        [2993, 2994, 2995, 2996, 2997, 2998, 2999],
      )
    })
  })
}

describe('an import', () => {
  it('may take longer than any other request, as long as its body comes', async () => {
    const timeouts = { headersTimeoutMs: 200, requestTimeoutMs: 400 }
    const service = await startService('sqlite::memory:', { timeouts })
    const upload = startUpload(service.url, 'ndjson')
    const startedAt = performance.now()
    const part = toLines(0, 10, 'x'.repeat(8_000))
    let parts = 0
    // Node checks the times of requests every tenth of a second here.
    while (performance.now() - startedAt < 3 * timeouts.requestTimeoutMs) {
      await upload.send(part)
      parts++
    }
    upload.end()
    assert.equal((await upload.answer).lines, parts * 10)
  })

  it('leaves nothing behind that would hold up a shutdown, whatever its sender does', async () => {
    const before = countTimers()
    const service = await startService('sqlite::memory:', { timeouts: { shutdownMs: 400 } })
    const socket = openSocket(service.url)
    socket.write(chunkedHead)
    await waitUntil(
      async () =>
        /_in_flight{operation="importPlantsAsNdjson"} 1/.test(
          (await service.call({ path: '/metrics' })).body,
        ),
      'the import',
    )
    await service.close()
    const closedAt = performance.now()
    await waitUntil(() => countTimers() <= before, 'no timer that holds up the end')
    assert.ok(performance.now() - closedAt < defaultTimeouts.requestTimeoutMs / 2)
  })

  it('ends with its connection, even while its token is looked up', async () => {
    const store = await sqlite.open(await sqlite.newUrl())
    const gate = Promise.withResolvers<void>()
    const findToken: typeof store.findToken = (hash) =>
      gate.promise.then(() => store.findToken(hash))
    const service = await startService('sqlite::memory:', {
      store: { ...store, findToken },
      env: { LOG_LEVEL: 'debug' },
    })
    const { token } = await issueToken(store, { name: 'test', scopes, lifetimeMs: undefined })
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/x-ndjson' }
    const request = toBytes({
      method: 'POST',
      path: '/plants.ndjson',
      headers,
      body: toLines(0, 1),
    })
    const before = countTimers()
    for (const [index, end] of [request.length, request.length - 5].entries()) {
      const socket = openSocket(service.url)
      socket.write(request.subarray(0, end))
      await waitUntil(() => socket.bytesWritten === end, 'the request')
      // The answer on another connection shows that the service has read what was sent before.
      await service.call({ path: '/healthz' })
      socket.resetAndDestroy()
      const countLost = () => service.log.filter((line) => line.includes('broken off')).length
      await waitUntil(() => countLost() === index + 1, 'the end of the connection')
    }
    gate.resolve()
    const inFlight = /_in_flight{operation="importPlantsAsNdjson"} 0/
    await waitUntil(
      async () => inFlight.test((await service.call({ path: '/metrics' })).body),
      'no import in flight',
    )
    await waitUntil(() => countTimers() <= before, 'no timer of an import')
  })

  it('is cut when its sender is too slow, and keeps what came before', async () => {
    const timeouts = { headersTimeoutMs: 100, requestTimeoutMs: 200 }
    const service = await startService('sqlite::memory:', { timeouts })
    // The last one has sent enough at first.
    const enough = `${' '.repeat(8_000)}\n`.repeat(12)
    const cases = [
      ['', false],
      ['', true],
      [enough, true],
    ] as const
    for (const [index, [before, isDripping]] of cases.entries()) {
      const upload = startUpload(service.url, 'ndjson')
      await upload.send(before + toLines(index, 1))
      const drip = setInterval(() => isDripping && upload.request.write('\n'), 20)
      releaseAfterTest(() => clearInterval(drip))
      const { status, error, message } = await upload.answer
      assert.deepEqual([status, error], [408, 40800])
      assert.match(
        message,
        /must send 65536 bytes, or the rest, within 0\.2 s\. Imported .*1 stored/,
      )
    }
  })

  it('ends when it takes too long', async () => {
    const service = await startService('sqlite::memory:', { timeouts: { importMs: 200 } })
    const upload = startUpload(service.url, 'ndjson')
    const { status, error, message } = await upload.answer
    assert.deepEqual([status, error], [408, 40800])
    assert.match(message, /^The import must end within 0\.2 s\. Nothing was imported\.$/)
  })

  it('is one of four at a time, and one of two of its token', async () => {
    const store = await sqlite.open(await sqlite.newUrl())
    const service = await startService('sqlite::memory:', { store })
    const newHeaders = async () => {
      const request = { name: 'test', scopes, lifetimeMs: undefined }
      const { token } = await issueToken(store, request)
      return { Authorization: `Bearer ${token}` }
    }
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
    const next = startUpload(service.url, 'csv')
    await next.send('id,name\n1,a\n')
    next.end()
    assert.equal((await next.answer).stored, 1)
  })

  it('waits while the queue of the store is full', async () => {
    const store = await sqlite.open(await sqlite.newUrl())
    let looks = 0
    const isFull = () => looks++ > 0 && looks < 10
    const service = await startService('sqlite::memory:', { store: { ...store, isFull } })
    const upload = startUpload(service.url, 'ndjson')
    await upload.send(toLines(0, 1))
    upload.end()
    assert.equal((await upload.answer).stored, 1)
    assert.ok(looks >= 10)
  })

  it('refuses a line that is too long, of which it holds the beginning, and goes on', async () => {
    const service = await startService('sqlite::memory:')
    const upload = startUpload(service.url, 'ndjson')
    await upload.send(`${toLines(0, 2)}{"id":3,"name":"`)
    for (let part = 0; part < 50; part++) await upload.send('x'.repeat(65_536))
    await upload.send(`"}\n${toLines(4, 1)}`)
    upload.end()
    const { status, stored, refused } = await upload.answer
    assert.deepEqual([status, stored], [200, 3])
    assert.deepEqual(
      refused.map(({ line, error, message }) => [line, error, message]),
      [[3, 41300, 'The line is longer than 8256 bytes.']],
    )
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

  it('ends after 100,000 refused lines, and its report says so', async () => {
    const service = await startService('sqlite::memory:')
    const upload = startUpload(service.url, 'ndjson')
    await upload.send(toLines(1, 10))
    const sending = (async () => {
      for (let part = 0; part < 8; part++) await upload.send('x\n'.repeat(25_000))
      await upload.send(toLines(11, 10))
      upload.end()
    })()
    const report = await upload.answer
    await sending
    const { status, lines, stored, invalid, refusedInAll, endedAtLine } = report
    assert.deepEqual(
      { status, lines, stored, invalid, refusedInAll, endedAtLine },
      {
        status: 200,
        lines: 100_010,
        stored: 10,
        invalid: 100_000,
        refusedInAll: 100_000,
        endedAtLine: 100_010,
      },
    )
    assert.equal(report.refused.length, 1_000)
    const { status: found } = await service.call({ path: '/plants/11' })
    assert.equal(found, 404)
  })

  it('ends at the bound of what gzip may expand to', async () => {
    const service = await startService('sqlite::memory:')
    const upload = startUpload(service.url, 'ndjson', { headers: { 'Content-Encoding': 'gzip' } })
    const bomb = gzipSync(Buffer.concat([Buffer.from(toLines(0, 1)), Buffer.alloc(40e6, '\n')]))
    await upload.send(bomb)
    upload.end()
    const { error, message } = await upload.answer
    assert.equal(error, 41300)
    assert.match(
      message,
      /expands to more than 100 times its size\. Imported before that: 1 stored/,
    )
  })
})

describe('the connection of an import', () => {
  /** Sends an import and then a get over one connection, and answers the statuses. */
  async function sendBoth(first: Buffer, url: string): Promise<number[]> {
    const last = toBytes({ path: '/plants/7', headers: authorized })
    const answers = await exchange(url, Buffer.concat([first, last]), { answers: 2 })
    return answers.map(({ status }) => status)
  }

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
      const first = toBytes({
        method: 'POST',
        path: `/plants.ndjson${query}`,
        headers: { ...authorized, 'Content-Type': 'application/x-ndjson', ...headers },
        body,
      })
      assert.deepEqual(await sendBoth(first, service.url), [status, 200])
    })
  }

  it('is cut in time when its client goes on sending after a refusal', async () => {
    const timeouts = { headersTimeoutMs: 100, requestTimeoutMs: 200 }
    const service = await startService('sqlite::memory:', { timeouts })
    const socket = openSocket(service.url)
    const headers = {
      ...authorized,
      'Content-Type': 'application/x-ndjson',
      'Content-Encoding': 'gzip',
      'Content-Length': '100000000',
    }
    const damaged = 'x'.repeat(2_000_000)
    socket.write(toBytes({ method: 'POST', path: '/plants.ndjson', headers, body: damaged }))
    const [answer] = await once(socket, 'data')
    assert.match(String(answer), /^HTTP\/1\.1 400 /)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    const sending = setInterval(() => socket.write('x'), 10)
    releaseAfterTest(() => clearInterval(sending))
    await closed
  })

  it('is asked to go on only when the import is accepted', async () => {
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
    const headers = {
      ...authorized,
      'Content-Type': 'application/x-ndjson',
      'Transfer-Encoding': 'chunked',
      Expect: '100-continue',
    }
    const socket = openSocket(service.url).setEncoding('latin1')
    socket.write(toBytes({ method: 'POST', path: '/plants.ndjson', headers }))
    // The import has begun.
    await once(socket, 'data')
    socket.write(`${chunk.length.toString(16)}\r\n${chunk}\r\nzz\r\n`)
    const [answer] = await once(socket, 'data')
    assert.match(answer, /^HTTP\/1\.1 400 .*X-Request-Id: .*"error":40000.*: 2 stored/s)
  })
})

describe('an import on a disk that becomes full', () => {
  it('is 50700, and says what is stored', async () => {
    const path = join(newFolder(), 'plants.db')
    const db = openConnection(path)
    const { page_count } = db.prepare('PRAGMA page_count').get() as { page_count: bigint }
    db.exec(`PRAGMA max_page_count = ${page_count + 30n}`)
    const store = closeAfterTest(buildSqliteStore(db))
    const service = await startService('sqlite::memory:', { store })
    const upload = startUpload(service.url, 'ndjson')
    await upload.send(toLines(0, 4_000))
    upload.end()
    const { status, error, message } = await upload.answer
    assert.deepEqual([status, error], [507, 50700])
    const count = await countPlants(store)
    assert.ok(count > 0)
    assert.equal(toStored(message), count, message)
    assert.match(
      message,
      /^The disk is full\. Imported before that: .*Lines \d+ to \d+ were not stored\. .*Lines after \d+ were not imported\.$/,
    )
    assert.doesNotMatch(message, /nothing/)
  })
})
