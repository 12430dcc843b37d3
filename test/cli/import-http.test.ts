import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { describe, it } from 'node:test'
import { run } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { releaseAfterTest } from '../support/release.ts'
import { operatorToken, startService } from '../support/service.ts'

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
  it('keeps to the rate limit of the service', async () => {
    const service = await startService('sqlite::memory:', { env: { RATE_LIMIT: '10/s' } })
    const input = Array.from({ length: 25 }, (_, id) => `{"id":${id},"name":"a"}\n`).join('')
    const { exitCode, stderr } = await importInto(service.url, input)
    assert.match(stderr, /^Imported into http:\S+: 25 stored/)
    assert.equal(exitCode, 0)
  })

  it('does not count a 429 as a failed attempt, however many there are', async () => {
    let requests = 0
    const url = await startStranger((request, response) => {
      requests++
      request.resume()
      const status = requests <= 12 ? 429 : requests === 13 ? 503 : 201
      response.writeHead(status, { 'Retry-After': '0' }).end()
    })
    const { exitCode, stderr } = await importInto(url, '{"id":1,"name":"a"}\n')
    assert.match(stderr, /^Imported into http:\S+: 1 stored/)
    assert.equal(exitCode, 0)
    assert.equal(requests, 14)
  })

  it('gives up after six attempts when the service stays unavailable', async () => {
    let requests = 0
    const url = await startStranger((request, response) => {
      requests++
      request.resume()
      response.writeHead(503, { 'Retry-After': '0' }).end('{"error":50300,"message":"Overloaded."}')
    })
    const { exitCode, stderr } = await importInto(url, '{"id":1,"name":"a"}\n')
    assert.ok(stderr.startsWith(`The service at ${url} is unavailable: Overloaded. Line 1 may`))
    assert.equal(exitCode, 74)
    assert.equal(requests, 6)
  })

  const hostile = '\u001b[2J\u009b31m\u007f\r\n\u202eImported: 9 stored'
  const bodies: [title: string, body: string][] = [
    ['the message of a JSON answer', JSON.stringify({ error: 40000, message: hostile })],
    ['any other answer', hostile],
  ]
  for (const [title, body] of bodies) {
    it(`shows control characters in ${title} as escapes, on one line`, async () => {
      const url = await startStranger((request, response) => {
        request.resume()
        response.writeHead(400).end(body)
      })
      const { stderr } = await importInto(url, '{"id":1,"name":"a"}\n')
      const [first, second] = stderr.split('\n')
      assert.equal(
        first,
        'line 1: \\u001b[2J\\u009b31m\\u007f\\u000d\\u000a\\u202eImported: 9 stored',
      )
      assert.match(second ?? '', /^Imported into http:\S+: 0 stored, 1 invalid/)
    })
  }

  it('shows no more than the beginning of an answer that has no end', async () => {
    const url = await startStranger((request, response) => {
      request.resume()
      response.writeHead(400)
      const write = () => response.write('x'.repeat(65_536), (error) => error ?? write())
      write()
    })
    const { exitCode, stderr } = await importInto(url, '{"id":1,"name":"a"}\n')
    assert.ok(stderr.length < 1_000, stderr.slice(0, 2_000))
    assert.match(stderr, /The answer is longer than/)
    assert.equal(exitCode, 74)
  })

  it('says that the service rejected the token, without showing it', async () => {
    const service = await startService('sqlite::memory:')
    const { exitCode, stderr } = await importInto(service.url, three, '--token', 'wrong')
    assert.match(stderr, /^The service rejected the token: /)
    assert.equal(stderr.includes('wrong'), false)
    assert.equal(exitCode, 77)
  })
})
