import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import type { Promised } from '../../src/conformance/promised.ts'
import { promises, runConformance } from '../../src/conformance/run.ts'
import { run } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { releaseAfterTest } from '../support/release.ts'
import { startService, operatorToken as token } from '../support/service.ts'
import { plantedFaults } from './faults.ts'
import { openFaulty } from './faulty-proxy.ts'

const { signal } = new AbortController()

/** However busy the machine is. */
const timeouts = { runMs: 600_000, answerMs: 60_000, cleanUpMs: 600_000 }

async function judge(url: string, chosen?: readonly Promised[]) {
  const { verdicts, remaining } = await runConformance({ url, token, chosen, timeouts, signal })
  const failed = verdicts.filter(({ outcome }) => outcome === 'failed')
  return { verdicts, remaining, failed }
}

/** The plants of a service. */
async function look(service: Awaited<ReturnType<typeof startService>>) {
  const { body } = await service.call({ path: '/plants?limit=1000' })
  return body
}

/** A server that answers the specification and nothing else. It cannot even delete. */
async function openMinimal(): Promise<{ url: string; stored: Map<string, string> }> {
  const stored = new Map<string, string>()
  const server = createServer(async (request, response) => {
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    const body = await text(request)
    const refuse = (message: string) => answer(400, { error: 1, message })
    if (request.method !== 'POST' || request.url !== '/plants') return refuse('no such operation')
    if (request.headers.authorization !== `Bearer ${token}`) return refuse('no valid token')
    try {
      const { id, name, tag } = JSON.parse(body)
      if (!Number.isInteger(id) || typeof name !== 'string') return refuse('id or name')
      if (tag !== undefined && typeof tag !== 'string') return refuse('tag')
      const digits = /"id":(-?\d+)[,}]/.exec(body)?.[1]
      if (digits === undefined) return refuse('id')
      stored.set(digits, name)
      return answer(200, { name, tag })
    } catch {
      return refuse('not JSON')
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  releaseAfterTest(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as { port: number }).port}`, stored }
}

describe('the promises', () => {
  it('have numbers of their own, and sentences', () => {
    assert.equal(new Set(promises.map(({ number }) => number)).size, promises.length)
    for (const { number, part, sentence } of promises) {
      assert.match(number, part === 'spec' ? /^S\d+$/ : /^C\d+$/)
      assert.match(sentence, /^\S.*[.]$/)
    }
  })

  for (const engine of engines) {
    it(`hold on ${engine.name}, and leave the plants of others as they were`, async () => {
      const service = await startService(await engine.newUrl())
      for (const id of ['0', '1', '9223372036854775807']) {
        assert.equal((await service.create(`{"id":${id},"name":"mine"}`)).status, 200)
      }
      const before = await look(service)
      const { failed, remaining, verdicts } = await judge(service.url)
      assert.deepEqual(failed, [])
      assert.deepEqual(remaining, [])
      assert.equal(verdicts.length, promises.length)
      assert.equal(await look(service), before)
    })
  }

  it('leave no plant on a server that limits the rate of requests', async () => {
    const service = await startService('sqlite::memory:', { env: { RATE_LIMIT: '4/s' } })
    const { failed, remaining } = await judge(
      service.url,
      promises.filter(({ number }) => number === 'C57'),
    )
    assert.deepEqual([failed, remaining], [[], []])
  })

  it('of the specification hold on a server that answers nothing else', async () => {
    const { url, stored } = await openMinimal()
    const spec = promises.filter(({ part }) => part === 'spec')
    const { failed, remaining, verdicts } = await judge(url, spec)
    assert.deepEqual(failed, [])
    assert.equal(verdicts.length, spec.length)
    assert.deepEqual(remaining.map(String).sort(), [...stored.keys()].sort())
  })
})

describe('a fault', () => {
  for (const { name, breaks, ...fault } of plantedFaults) {
    it(`is found: ${name}`, async () => {
      const service = await startService('sqlite::memory:')
      const url = await openFaulty(service.url, fault)
      const chosen = promises.filter(({ number }) => number === breaks)
      const { failed } = await judge(url, chosen)
      const [verdict] = failed
      assert.ok(verdict?.sent && verdict.expected && verdict.got, `${breaks} holds`)
      assert.doesNotMatch(JSON.stringify(failed), new RegExp(token))
    })
  }

  it('is not found where there is none, through the same proxy', async () => {
    const service = await startService('sqlite::memory:')
    const { failed } = await judge(await openFaulty(service.url, {}))
    assert.deepEqual(failed, [])
    assert.equal(await look(service), '[]')
  })
})

describe('plant-store conformance', () => {
  const folder = newFolder()

  it('prints a line for each promise and ends with 0 if all hold', async () => {
    const service = await startService('sqlite::memory:')
    const args = ['conformance', service.url, '--token', token, '--only', 'spec']
    const { exitCode, stdout, stderr } = await run(args, { folder })
    assert.deepEqual([exitCode, stderr], [0, ''])
    assert.match(stdout, /^holds {3}S1 {4}A valid NewPlant/)
    assert.match(stdout, /\n13 promises hold, 0 failed \(\d+ requests, [\d.]+ s\)\.\n$/)
  })

  it('prints what was sent, expected and got, without the token, and ends with 1', async () => {
    const service = await startService('sqlite::memory:')
    // It also repeats the token, as a server that is being debugged may do.
    const answer = (text: string) =>
      text
        .replace('HTTP/1.1 200 OK', 'HTTP/1.1 202 Accepted')
        .replace('{"name":', `{"seen":"${token}","name":`)
    const url = await openFaulty(service.url, { answer })
    const env = { PLANT_STORE_TOKEN: token }
    const { exitCode, stdout } = await run(['conformance', url, '--only', 'spec'], { folder, env })
    assert.equal(exitCode, 1)
    const pattern =
      /^FAILED {2}S1 .* Sent: POST \/plants .* Expected: status 200 Got: status 202, \{"seen":"<token>","name":.*\}$/m
    assert.match(stdout, pattern)
    assert.doesNotMatch(stdout, new RegExp(token))
    assert.equal(await look(service), '[]')
  })

  it('prints JSON, and names the plants that a server does not delete', async () => {
    const { url, stored } = await openMinimal()
    const args = ['conformance', url, '--token', token, '--only', 'spec', '--json']
    const { exitCode, stdout, stderr } = await run(args, { folder })
    assert.equal(exitCode, 0)
    const report = JSON.parse(stdout)
    assert.deepEqual(report.remaining.sort(), [...stored.keys()].sort())
    assert.deepEqual(report.promises[0], {
      number: 'S1',
      part: 'spec',
      sentence: promises[0]?.sentence,
      outcome: 'holds',
    })
    assert.match(stderr, /did not delete these plants of the run: -?\d+, /)
  })

  it('refuses a wrong address, token or file with one line', async () => {
    const service = await startService('sqlite::memory:')
    const cases: [args: string[], exitCode: number, line: RegExp][] = [
      [['ftp://a', '--token', token], 78, /^The address must be an http/],
      [[service.url], 78, /^Set PLANT_STORE_TOKEN, --token or --token-file\.\n$/],
      [[service.url, '--token-file', join(folder, 'none')], 78, /^--token-file: cannot read /],
      [[service.url, '--token', 'no-such-token'], 77, /refuses the token \(401\)/],
      [['http://127.0.0.1:1', '--token', token], 74, /cannot be asked: .*ECONNREFUSED/],
      // An IP address cannot be sent as the name of a TLS server, and Node.js warns of it.
      [['https://127.0.0.1:1', '--token', token], 74, /cannot be asked: .*ECONNREFUSED/],
      [[service.url, '--token', token, '--only', 'all'], 64, /--only/],
    ]
    const warned: Error[] = []
    const note = (warning: Error) => warned.push(warning)
    process.on('warning', note)
    releaseAfterTest(() => process.off('warning', note))
    for (const [args, code, line] of cases) {
      const { exitCode, stderr, stdout } = await run(['conformance', ...args], { folder })
      assert.deepEqual([exitCode, stdout], [code, ''])
      assert.match(stderr, line)
    }
    assert.deepEqual(warned, [])
  })

  it('deletes its plants when it is interrupted', async () => {
    const service = await startService('sqlite::memory:')
    const controller = new AbortController()
    const answer = (text: string, request: string) => {
      if (request.includes('"id"')) controller.abort()
      return text
    }
    const url = await openFaulty(service.url, { answer })
    await runConformance({ url, token, timeouts, signal: controller.signal }).catch(() => {})
    assert.equal(await look(service), '[]')
  })
})
