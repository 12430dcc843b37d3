import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { preload, start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { listen } from '../support/listen.ts'
import { findFreePort } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { call } from '../support/wire.ts'
import { ends, endsWith, readJson } from './ends.ts'

const anyPort = { PORT: '0' }
const operatorToken = 'a token of the operator'.replaceAll(' ', '-')

async function startServing(folder: string, env: Record<string, string> = {}) {
  const service = start(['serve'], { folder, env: { ...anyPort, ...env } })
  const [, url = ''] = await service.waitFor(/address {3}(http:\S+)/)
  return { ...service, url }
}

/** Runs the line that the service prints, and answers it. */
async function pasteCurl({ waitFor }: Pick<ReturnType<typeof start>, 'waitFor'>): Promise<string> {
  const [, line = ''] = await waitFor(/^ {2}(curl .*)$/m)
  const { stdout } = await promisify(execFile)('sh', ['-c', line])
  assert.equal(stdout, '{"name":"Monstera deliciosa","tag":"indoor"}\n')
  return line
}

describe('plant-store serve', () => {
  it('starts with nothing configured and prints a curl line, whose token the next start does not show', async () => {
    const folder = newFolder()
    const service = await startServing(folder)
    const [, token] = await service.waitFor(/token {5}(plst_\w{36})/)
    assert.match(service.output.stdout, new RegExp(`document {2}${service.url}/openapi.json`))
    assert.ok((await pasteCurl(service)).includes(`Bearer ${token}`))
    assert.equal(statSync(join(folder, 'data', 'plant-store.db')).mode & 0o777, 0o600)
    const [listening] = await service.waitFor(/^\{.*"msg":"listening".*$/m)
    const { url, store } = JSON.parse(listening)
    assert.deepEqual([url, store], [service.url, 'sqlite:data/plant-store.db'])
    assert.equal(service.output.stderr.includes('plst_'), false)
    service.child.kill('SIGTERM')
    await service.ended
    const second = await startServing(folder)
    await second.waitFor(/TOKEN=\$\(npx plant-store token create --name me\)/)
    assert.equal(second.output.stdout.includes('plst_'), false)
    const headers = { Authorization: `Bearer ${token}` }
    assert.equal((await call(second.url, { path: '/plants/1', headers })).status, 200)
  })

  it('keeps the first token out of the journal of systemd, and says how to make one', async () => {
    const folder = newFolder()
    const service = await startServing(folder, { JOURNAL_STREAM: '8:12345' })
    await service.waitFor(/Store a plant:\n\n {2}curl .*\n/)
    assert.doesNotMatch(service.output.stdout + service.output.stderr, /plst_/)
    assert.match(service.output.stdout, /TOKEN=\$\(npx plant-store token create --name me\)/)
    assert.deepEqual(await readJson('token list', folder), [])
    const token = await ends('token create --name me', 0, /./, folder)
    const headers = { Authorization: `Bearer ${token.trim()}` }
    assert.equal((await call(service.url, { path: '/plants/1', headers })).status, 404)
  })

  it('keeps compiled code for the next start, even if it is killed', async () => {
    const cache = newFolder()
    const service = await startServing(newFolder(), { NODE_COMPILE_CACHE: cache })
    await call(service.url, { path: '/healthz' })
    service.child.kill('SIGKILL')
    await service.ended
    const files = readdirSync(cache, { recursive: true })
    assert.ok(files.length > 100, `${files.length} files`)
  })

  for (const [signal, status] of [
    ['SIGTERM', 503],
    ['SIGHUP', 503],
    ['SIGINT', undefined],
  ] as const) {
    it(`ends on ${signal} with 0 and leaves the store in one file`, async () => {
      const folder = newFolder()
      const service = await startServing(folder, { PLANT_STORE_TOKEN: operatorToken })
      // A debugger would be a way in for every user of the machine.
      service.child.kill('SIGUSR1')
      await call(service.url, { path: '/healthz' })
      service.child.kill(signal)
      // Ctrl-C waits for nobody. After the others, a balancer gets time to notice.
      if (status !== undefined) {
        await service.waitFor(/: finishing accepted requests/)
        assert.equal((await call(service.url, { path: '/readyz' })).status, status)
      }
      const said = /^(?!.*(Debugger|inspector)).*every accepted request was answered/s
      await endsWith(service.ended, 0, said)
      assert.deepEqual(readdirSync(join(folder, 'data')), ['plant-store.db'])
    })
  }

  it('ends at once on a second signal', async () => {
    const service = await startServing(newFolder())
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1').on('error', () => {})
    releaseAfterTest(() => socket.destroy())
    await new Promise((resolve) => socket.write('POST /plants HTTP/1.1\r\nHost: a\r\n', resolve))
    await call(service.url, { path: '/healthz' })
    service.child.kill('SIGTERM')
    await service.waitFor(/a second signal stops now/)
    while (service.child.exitCode === null) {
      service.child.kill('SIGTERM')
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    await endsWith(service.ended, 1, /./)
  })

  it('serves a demo from memory: plants with names and tags, and a token to ask with', async () => {
    const folder = newFolder()
    // A journal keeps the token of a demo: it is worth nothing.
    const env = { ...anyPort, DATABASE_URL: 'sqlite:own.db', JOURNAL_STREAM: '8:12345' }
    const service = start(['serve', '--demo'], { folder, env })
    const [, url = ''] = await service.waitFor(/address {3}(http:\S+)/)
    const [, token] = await service.waitFor(/token {5}(plst_\w{36})/)
    const headers = { Authorization: `Bearer ${token}` }
    const { body } = await call(url, { path: '/plants', headers })
    const plants: { name: string }[] = JSON.parse(body)
    assert.equal(plants.length, 12)
    for (const { name } of plants) assert.match(name, /^[A-Z][a-z]+ [a-z]+$/)
    await pasteCurl(service)
    assert.deepEqual(readdirSync(folder), [])
  })

  it('ends with its standard input, if that is wanted, and on a signal before', async () => {
    const options = { folder: newFolder(), env: anyPort, input: 'x', isInputOpen: true }
    const [ending, signalled] = ['first', 'second'].map(() =>
      start(['serve', '--demo', '--until-stdin-ends'], options),
    ) as [ReturnType<typeof start>, ReturnType<typeof start>]
    await Promise.all([ending, signalled].map(({ waitFor }) => waitFor(/address/)))
    ending.child.stdin?.end()
    signalled.child.kill('SIGTERM')
    for (const { ended } of [ending, signalled]) {
      await endsWith(ended, 0, /every accepted request was answered/)
    }
  })

  it('makes one first token when several services start on an empty folder at once', async () => {
    const folder = newFolder()
    const services = await Promise.all(Array.from({ length: 3 }, () => startServing(folder)))
    const first = services.filter(({ output }) => output.stdout.includes('plst_'))
    assert.equal(first.length, 1)
  })

  it('logs JSON where there is no terminal, with the id that the answer carries', async () => {
    const service = await startServing(newFolder(), { LOG_LEVEL: 'debug' })
    const { headers } = await call(service.url, { path: '/plants/1' })
    const [line] = await service.waitFor(/^\{.*"answered".*$/m)
    const entry = JSON.parse(line)
    assert.equal(entry.requestId, headers.get('x-request-id'))
    assert.equal(entry.statusCode, 401)
  })

  it('refuses a port that is taken, and touches nothing', async () => {
    const folder = newFolder()
    const { port } = new URL(await listen(createServer()))
    const said = new RegExp(`^PORT ${port} on HOST 127\\.0\\.0\\.1 is in use by another .*\n$`)
    await ends(`serve --port ${port}`, 78, said, folder)
    assert.equal(existsSync(join(folder, 'data')), false)
  })

  it('listens only when it can serve, so it cuts off no client that waits for it', async () => {
    const code = `import { Server } from 'node:net'
      const { listen } = Server.prototype
      Server.prototype.listen = function (...args) {
        console.error('The port is opened.')
        return listen.apply(this, args)
      }`
    const service = await startServing(newFolder(), { NODE_OPTIONS: preload(code) })
    assert.equal(service.output.stderr.match(/The port is opened/g)?.length, 1)
  })

  it('refuses all but one of several that start at once on one port', async () => {
    const port = String(await findFreePort())
    const starts = Array.from({ length: 4 }, () =>
      start(['serve', '--port', port], { folder: newFolder() }),
    )
    const outcomes = await Promise.all(
      starts.map(({ ended, waitFor }) => Promise.any([waitFor(/listening/), ended])),
    )
    const refused = outcomes.filter((outcome) => 'exitCode' in outcome)
    assert.equal(refused.length, 3)
    const said = /^PORT \d+ on HOST 127\.0\.0\.1 is in use by another program.*\n$/
    for (const one of refused) await endsWith(Promise.resolve(one), 78, said)
  })
})

const root = join(import.meta.dirname, '..', '..')

it('npm start hands SIGTERM on to the service', { timeout: 60_000 }, async () => {
  const { PATH = '', HOME = '' } = process.env
  const { child, ended, waitFor } = start(['start'], {
    folder: root,
    program: ['npm'],
    env: { PATH, HOME, PORT: '0', DATABASE_URL: `sqlite:${join(newFolder(), 'plants.db')}` },
  })
  const [, pid] = await waitFor(/"pid":(\d+),.*"listening"/)
  releaseAfterTest(() => spawnSync('kill', ['-KILL', String(pid)]))
  child.kill('SIGTERM')
  // The output ends with the service, not with npm.
  const { stderr } = await ended
  assert.match(stderr, /stopped: every accepted request was answered/)
})
