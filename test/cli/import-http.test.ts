import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { describe, it } from 'node:test'
import { emptyReport } from '../../client/import.ts'
import { run } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { openProxy } from '../support/proxy.ts'
import { releaseAfterTest } from '../support/release.ts'
import { operatorToken, startService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'

const three =
  '{"id":1,"name":"one"}\n{"id":2,"name":"two","tag":""}\n{"id":9223372036854775807,"name":"🌵"}\n'

function importInto(url: string, input: string, ...flags: string[]) {
  const args = ['import', '-', '--format', 'ndjson', '--url', url, ...flags]
  const env = { PLANT_STORE_TOKEN: operatorToken }
  return run(args, { folder: newFolder(), env, input })
}

/** Starts a server that is not a Plant Store. It is closed with the test. */
async function startStranger(answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  releaseAfterTest(() => server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}

for (const engine of engines) {
  describe(`plant-store import --url, into a service on ${engine.name}`, () => {
    it('stores plants, recognises them and handles conflicts as in a store', async () => {
      const service = await startService(await engine.newUrl())
      const first = await importInto(service.url, `${three}{"id":1,"name":"uno"}\n`)
      assert.match(
        first.stderr,
        /line 4: .*different content.*\nImported into http:\S+: 3 stored, 1 in conflict/s,
      )
      assert.equal(first.exitCode, 65)
      const lines = `${three}{"id":2,"name":"zwei"}\n`
      const again = await importInto(service.url, lines, '--on-conflict', 'replace')
      assert.match(again.stderr, /Imported into \S+: 0 stored, 3 already there, 1 replaced/)
      assert.equal(again.exitCode, 0)
      const stored = await service.call({ path: '/plants' })
      assert.equal(
        stored.body,
        '[{"id":1,"name":"one"},{"id":2,"name":"zwei"},{"id":9223372036854775807,"name":"🌵"}]',
      )
    })
  })
}

describe('plant-store import --url', () => {
  for (const [address, isWarned] of [
    ['http://plants.example', true],
    ['http://10.0.0.7:3000/store', true],
    ['http://[fe80::1]', true],
    ['http://localhost.example', true],
    ['https://plants.example', false],
    ['http://localhost:3000', false],
    ['http://plants.localhost', false],
    ['http://127.1.2.3', false],
    ['http://[::1]:3000', false],
  ] as const) {
    const title = isWarned ? 'warns that the token is not encrypted' : 'warns of nothing'
    it(`${title} on the way to ${address}`, async (test) => {
      const service = await startService('sqlite::memory:')
      const send = fetch
      // Every name leads to the service of this test.
      test.mock.method(globalThis, 'fetch', (input: string, init: RequestInit) =>
        send(input.replace(address, service.url), init),
      )
      const { exitCode, stderr } = await importInto(address, three, '--quiet')
      assert.equal(exitCode, 0)
      const { host } = new URL(address)
      const warning = `Warning: the token and the plants go to ${host} over plain HTTP, where others can read them. Use https.\n`
      assert.equal(stderr, isWarned ? warning : '')
      assert.equal((await importInto(address, three, '--quiet', '--dry-run')).stderr, '')
    })
  }

  it('keeps to the rate limit of the service', async () => {
    const service = await startService('sqlite::memory:', { env: { RATE_LIMIT: '10/s' } })
    const input = Array.from({ length: 25 }, (_, id) => `{"id":${id},"name":"a"}\n`).join('')
    const { exitCode, stderr } = await importInto(service.url, input)
    assert.match(stderr, /^Imported into http:\S+: 25 stored/)
    assert.equal(exitCode, 0)
  })

  const report = JSON.stringify({ ...emptyReport, lines: 1, stored: 1 })

  it('does not count a 429 as a failed attempt, however many there are', async () => {
    let requests = 0
    const url = await startStranger((request, response) => {
      requests++
      request.resume()
      const status = requests <= 7 ? 429 : requests === 8 ? 503 : 200
      // The client gives up where it would have to wait for more than a minute.
      response.writeHead(status, { 'Retry-After': requests <= 6 ? '61' : '0' }).end(report)
    })
    const { exitCode, stderr } = await importInto(url, '{"id":1,"name":"a"}\n')
    assert.match(stderr, /^Imported into http:\S+: 1 stored/m)
    assert.equal(exitCode, 0)
    assert.equal(requests, 9)
  })

  it('soon gives up an address at which nothing listens', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    await new Promise((resolve) => server.close(resolve))
    const { exitCode, stderr } = await importInto(
      `http://127.0.0.1:${port}`,
      '{"id":1,"name":"a"}\n',
    )
    assert.match(
      stderr,
      /^The service at http:\S+ failed: Nothing listens at http:\S+: start the service, or check the url\. Line 1 was not stored\./,
    )
    assert.equal(exitCode, 74)
  })

  it('goes on after lost connections, and finds what it has sent before', async () => {
    const service = await startService('sqlite::memory:')
    const { port } = new URL(service.url)
    const proxy = await openProxy('127.0.0.1', Number(port))
    const lines = Array.from({ length: 12_000 }, (_, id) => `{"id":${id},"name":"${id}"}\n`)
    const running = importInto(`http://127.0.0.1:${proxy.port}`, lines.join(''), '--quiet')
    for (const id of [1_000, 4_000, 8_000]) {
      const isThere = async () => (await service.store.getPlant(BigInt(id))) !== undefined
      await waitUntil(isThere, `plant ${id}`)
      await proxy.cut()
      await proxy.restore()
    }
    const { exitCode, stderr } = await running
    assert.equal(exitCode, 0, stderr)
    const stored = await service.call({ path: '/plants?after=11998' })
    assert.equal(stored.body, '[{"id":11999,"name":"11999"}]')
  })

  const hostile = '\u001b[2J\u009b31m\u007f\r\n\u202eImported: 9 stored'

  it('shows control characters in an answer as escapes, on one line', async () => {
    const url = await startStranger((request, response) => {
      request.resume()
      response.writeHead(400).end(JSON.stringify({ error: 40000, message: hostile }))
    })
    const { stderr, exitCode } = await importInto(url, '{"id":1,"name":"a"}\n')
    const shown = '\\u001b[2J\\u009b31m\\u007f\\u000d\\u000a\\u202eImported: 9 stored'
    assert.ok(stderr.startsWith(`The service at ${url} failed: ${shown} Line 1 may`), stderr)
    assert.equal(exitCode, 74)
  })

  it('shows nothing of an answer that is not that of a Plant Store', async () => {
    const url = await startStranger((request, response) => {
      request.resume()
      response.writeHead(200).end(hostile)
    })
    const { stderr, exitCode } = await importInto(url, '{"id":1,"name":"a"}\n')
    assert.match(stderr, /^http:\S+ failed: The answer \(200\) is not that of a Plant Store/)
    assert.equal(exitCode, 74)
  })

  it('reads no more than the beginning of an answer that has no end', async () => {
    const url = await startStranger((request, response) => {
      request.resume()
      response.writeHead(400)
      const write = () => response.write('x'.repeat(65_536), (error) => error ?? write())
      write()
    })
    const { exitCode, stderr } = await importInto(url, '{"id":1,"name":"a"}\n')
    assert.match(stderr, /was lost: the answer is longer than 1048576 bytes/)
    assert.equal(exitCode, 74)
  })

  const refusal = { line: 1, id: 1, error: 40900, message: 'x' }
  const reports: [title: string, report: object][] = [
    ['more than there can be', { stored: 2 ** 32 }],
    ['more than any memory holds', { stored: 2 ** 31 - 1 }],
    ['a number without end', { alreadyThere: 1e308 }],
    ['less than nothing', { stored: 4, replaced: -1 }],
    ['half a plant', { stored: 2.5, skipped: 0.5 }],
    ['a word', { stored: '3' }],
    ['no number', { stored: 3, skipped: null }],
    ['one plant more', { stored: 4 }],
    ['one plant fewer', { stored: 2 }],
    ['a plant that is stored and refused', { stored: 3, refused: [refusal] }],
    ['one refusal twice', { stored: 1, refused: [refusal, refusal] }],
    ['the refusal of another line', { stored: 2, refused: [{ ...refusal, line: 4 }] }],
    ['the refusal of no line', { stored: 2, refused: [{ ...refusal, line: '1' }] }],
    ['a refusal without a reason', { stored: 2, refused: [{ ...refusal, message: undefined }] }],
    ['refusals that are none', { stored: 2, refused: [null] }],
    ['no list of refusals', { stored: 3, refused: { length: 2 ** 31 } }],
    ['more refusals than plants', { refused: Array.from({ length: 1_001 }, () => refusal) }],
  ]
  for (const [title, report] of reports) {
    it(`does not believe a report of ${title}`, async () => {
      const url = await startStranger((_, response) => {
        response.end(JSON.stringify({ ...emptyReport, lines: 3, ...report }))
      })
      const { exitCode, stderr } = await importInto(url, three)
      assert.match(stderr, /^(http:\S+ failed: The answer|The report of the service at http:\S+)/)
      assert.match(stderr, /Lines 1 to 3 may or may not be stored\./)
      assert.equal(exitCode, 74)
    })
  }

  it('shows only the beginning of a reason', async () => {
    const long = { ...refusal, message: 'x'.repeat(100_000) }
    const url = await startStranger((_, response) => {
      const counts = { lines: 3, stored: 2, conflicts: 1, refusedInAll: 1 }
      response.end(JSON.stringify({ ...emptyReport, ...counts, refused: [long] }))
    })
    const { exitCode, stderr } = await importInto(url, three)
    assert.match(stderr, /^line 1: x{300}\n/)
    assert.equal(exitCode, 65)
  })

  it('refuses a plant that is too long for a request, and takes the others', async () => {
    const service = await startService('sqlite::memory:')
    const long = `{"id":2,"name":"${'x'.repeat(1024 * 1024)}"}`
    const input = `{"id":1,"name":"a"}\n${long}\n{"id":3,"name":"c"}\n`
    const { exitCode, stderr } = await importInto(service.url, input)
    assert.match(
      stderr,
      /^line 2: .*more than 1048576 bytes.*\nImported into \S+: 2 stored, 1 invalid/,
    )
    assert.equal(exitCode, 65)
  })

  it('says that the service rejected the token, without showing it', async () => {
    const service = await startService('sqlite::memory:')
    const { exitCode, stderr } = await importInto(service.url, three, '--token', 'wrong')
    assert.match(stderr, /^The service rejected the token: .* Lines 1 to 3 were not stored\./)
    assert.equal(stderr.includes('wrong'), false)
    assert.equal(exitCode, 77)
  })

  for (const lost of [1, 3]) {
    it(`does not say that nothing is stored when ${lost} answers were lost before the rejection`, async () => {
      let requests = 0
      const url = await startStranger((request, response) => {
        requests++
        request.resume()
        if (requests <= lost) response.destroy()
        else response.writeHead(401).end(JSON.stringify({ error: 40101, message: 'Unknown.' }))
      })
      const { exitCode, stderr } = await importInto(url, three)
      assert.match(
        stderr,
        /^The service rejected the token: Unknown\. Lines 1 to 3 may or may not be/,
      )
      assert.equal(exitCode, 77)
    })
  }
})
