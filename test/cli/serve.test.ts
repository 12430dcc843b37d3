import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { run, runProcess, start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { findFreePort } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { call } from '../support/wire.ts'

const anyPort = { PORT: '0' }
const operatorToken = 'a token of the operator'.replaceAll(' ', '-')

async function startServing(folder: string, env: Record<string, string> = {}) {
  const service = start(['serve'], { folder, env: { ...anyPort, ...env } })
  const [, url = ''] = await service.waitFor(/address {3}(http:\S+)/)
  return { ...service, url }
}

describe('plant-store serve', () => {
  it('starts with nothing configured and prints a curl line that stores a plant', async () => {
    const folder = newFolder()
    const service = await startServing(folder)
    const [, token] = await service.waitFor(/token {5}(plst_\w{36})/)
    assert.match(service.output.stdout, new RegExp(`document {2}${service.url}/openapi.json`))
    const [, line = ''] = await service.waitFor(/^ {2}(curl .*)$/m)
    assert.ok(line.includes(`Bearer ${token}`))
    const { stdout } = await promisify(execFile)('sh', ['-c', line])
    assert.equal(stdout, '{"name":"Monstera deliciosa","tag":"indoor"}')
    assert.equal(statSync(join(folder, 'data', 'plant-store.db')).mode & 0o777, 0o600)
  })

  it('prints the first token once, and on a later start says how to make one', async () => {
    const folder = newFolder()
    const first = await startServing(folder)
    const [token] = await first.waitFor(/plst_\w{36}/)
    first.child.kill('SIGTERM')
    await first.ended
    const second = await startServing(folder)
    await second.waitFor(/TOKEN=\$\(npx plant-store token create --name me\)/)
    assert.equal(second.output.stdout.includes('plst_'), false)
    const answer = await call(second.url, {
      path: '/plants/1',
      headers: { Authorization: `Bearer ${token}` },
    })
    assert.equal(answer.status, 404)
  })

  it('keeps the first token out of the journal of systemd, and says how to make one', async () => {
    const folder = newFolder()
    const service = await startServing(folder, { JOURNAL_STREAM: '8:12345' })
    await service.waitFor(/Store a plant:\n\n {2}curl .*\n/)
    assert.doesNotMatch(service.output.stdout + service.output.stderr, /plst_/)
    assert.match(service.output.stdout, /TOKEN=\$\(npx plant-store token create --name me\)/)
    const { stdout } = await run(['token', 'list', '--json'], { folder })
    assert.deepEqual(JSON.parse(stdout), [])
    const { stdout: token } = await run(['token', 'create', '--name', 'me'], { folder })
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

  it('lets a flag win over its variable', async () => {
    const folder = newFolder()
    const service = start(['serve', '--port', '0', '--database', 'sqlite:other.db'], {
      folder,
      env: { PORT: 'wrong', DATABASE_URL: 'wrong' },
    })
    await service.waitFor(/store {5}sqlite:other\.db/)
    assert.deepEqual(
      readdirSync(folder).sort(),
      ['', '-shm', '-wal'].map((suffix) => `other.db${suffix}`),
    )
  })

  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    it(`ends on ${signal} with 0 and leaves the store in one file`, async () => {
      const folder = newFolder()
      const service = await startServing(folder, { PLANT_STORE_TOKEN: operatorToken })
      service.child.kill(signal)
      const { exitCode, stderr } = await service.ended
      assert.equal(exitCode, 0)
      assert.match(stderr, /every accepted request was answered/)
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
    assert.equal((await service.ended).exitCode, 1)
  })

  it('opens no debugger on SIGUSR1', async () => {
    const service = await startServing(newFolder())
    service.child.kill('SIGUSR1')
    assert.equal((await call(service.url, { path: '/healthz' })).status, 200)
    service.child.kill('SIGTERM')
    const { exitCode, stderr } = await service.ended
    assert.doesNotMatch(stderr, /Debugger|inspector/)
    assert.equal(exitCode, 0)
  })

  it('is reached under a name that has several addresses', async () => {
    const service = await startServing(newFolder(), { HOST: 'localhost' })
    const { headers } = await call(service.url, { path: '/healthz', headers: { Expect: 'x' } })
    assert.match(headers.get('content-type') ?? '', /json/)
  })

  it('prints that it listens everywhere, and a line to paste that works', async () => {
    const service = await startServing(newFolder(), { HOST: '0.0.0.0' })
    assert.match(service.url, /^http:\/\/0\.0\.0\.0:\d+$/)
    const [, line = ''] = await service.waitFor(/^ {2}(curl .*)$/m)
    assert.match(line, /^curl http:\/\/127\.0\.0\.1:\d+\/plants /)
    const { stdout } = await promisify(execFile)('sh', ['-c', line])
    assert.equal(stdout, '{"name":"Monstera deliciosa","tag":"indoor"}')
  })

  it('logs where it listens and on which store', async () => {
    const service = await startServing(newFolder())
    const [line] = await service.waitFor(/^\{.*"msg":"listening".*$/m)
    const { url, store } = JSON.parse(line)
    assert.equal(url, service.url)
    assert.equal(store, 'sqlite:data/plant-store.db')
    assert.equal(service.output.stderr.includes('plst_'), false)
  })

  it('drains after SIGHUP as after SIGTERM', async () => {
    const service = await startServing(newFolder())
    await call(service.url, { path: '/healthz' })
    service.child.kill('SIGHUP')
    await service.waitFor(/SIGHUP: finishing accepted requests/)
    const { status } = await call(service.url, { path: '/readyz' })
    assert.equal(status, 503)
    assert.equal((await service.ended).exitCode, 0)
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
    const [, line = ''] = await service.waitFor(/^ {2}(curl .*)$/m)
    const { stdout } = await promisify(execFile)('sh', ['-c', line])
    assert.equal(stdout, '{"name":"Monstera deliciosa","tag":"indoor"}')
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
      const { exitCode, stderr } = await ended
      assert.match(stderr, /every accepted request was answered/)
      assert.equal(exitCode, 0)
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

  const wrong: [env: Record<string, string>, message: RegExp][] = [
    [{ PORT: '65536' }, /^PORT must be a number from 0 to 65535, not "65536"\.\n$/],
    [{ DATABASE_URL: 'sqlite:.' }, /^Cannot open the database/],
    [{ DATABASE_URL: 'sqlite:/proc/none/plants.db' }, /^Cannot open the database \/proc\/none/],
    [{ DATABASE_URL: 'sqlite:/proc/plants.db' }, /^Cannot open the database \/proc\/plants\.db: /],
    [{ DATABASE_URL: 'sqlite:/proc/kmsg' }, /^(Cannot open the database )?\/proc\/kmsg/],
    [{ DATABASE_URL: 'sqlite:/dev/zero' }, /^Cannot open the database \/dev\/zero: it is not a /],
    [{ PLANT_STORE_TOKEN: 'too-short' }, /^PLANT_STORE_TOKEN must be 20 or more visible ASCII/],
  ]
  for (const [env, message] of wrong) {
    it(`refuses ${JSON.stringify(env)} with one line and 78, and touches nothing`, async () => {
      const folder = newFolder()
      const { exitCode, stdout, stderr } = await run(['serve'], {
        folder,
        env: { ...anyPort, ...env },
      })
      assert.match(stderr, message)
      assert.match(stderr, /^[^\n]+\n$/)
      assert.equal(stdout, '')
      assert.equal(exitCode, 78)
      assert.deepEqual(readdirSync(folder), [])
    })
  }

  it('refuses a named pipe in place of the database, without waiting for its other end', async () => {
    const folder = newFolder()
    execFileSync('mkfifo', [join(folder, 'plants.db')])
    const env = { ...anyPort, DATABASE_URL: 'sqlite:plants.db' }
    const { exitCode, stderr } = await run(['serve'], { folder, env })
    assert.equal(stderr, 'Cannot open the database plants.db: it is not a regular file.\n')
    assert.equal(exitCode, 78)
  })

  it('reports every mistake at once', async () => {
    const env = { PORT: 'x', LOG_LEVEL: 'x', CORS_ORIGIN: 'x' }
    const { stderr } = await run(['serve'], { folder: newFolder(), env })
    assert.deepEqual(
      stderr
        .trim()
        .split('\n')
        .map((line) => line.split(' ')[0]),
      ['PORT', 'CORS_ORIGIN', 'LOG_LEVEL'],
    )
  })

  it('refuses a port that is taken, and touches nothing', async () => {
    const folder = newFolder()
    const other = createServer()
    releaseAfterTest(() => other.close())
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as { port: number }
    const { exitCode, stderr } = await run(['serve', '--port', String(port)], { folder })
    assert.match(
      stderr,
      new RegExp(`^PORT ${port} on HOST 127\\.0\\.0\\.1 is in use by another program.*\n$`),
    )
    assert.equal(exitCode, 78)
    assert.equal(existsSync(join(folder, 'data')), false)
  })

  it('refuses all but one of several that start at once on one port', async () => {
    const port = String(await findFreePort())
    const starts = Array.from({ length: 4 }, () =>
      start(['serve', '--port', port], { folder: newFolder() }),
    )
    const ends = await Promise.all(
      starts.map(({ ended, waitFor }) => Promise.any([waitFor(/listening/), ended])),
    )
    const refused = ends.filter((end) => 'exitCode' in end)
    assert.equal(refused.length, 3)
    for (const { exitCode, stderr } of refused) {
      assert.match(stderr, /^PORT \d+ on HOST 127\.0\.0\.1 is in use by another program.*\n$/)
      assert.equal(exitCode, 78)
    }
  })
})

describe('plant-store', () => {
  const folder = newFolder()
  const commands = [
    [],
    ['serve'],
    ['token'],
    ['token', 'create'],
    ['token', 'list'],
    ['token', 'revoke'],
    ['openapi'],
    ['copy'],
  ]
  for (const command of commands) {
    it(`explains itself in 80 columns: ${[...command, '--help'].join(' ')}`, async () => {
      const { exitCode, stdout, stderr } = await run([...command, '--help'], { folder })
      assert.match(stdout, new RegExp(`^Usage: ${['plant-store', ...command].join(' ')}`))
      assert.doesNotMatch(stdout, /^.{81}/m)
      assert.equal(stderr, '')
      assert.equal(exitCode, 0)
    })
  }

  it('refuses a Node.js that is too old, with what to do', async () => {
    const older = "Object.defineProperty(process, 'versions', { value: { node: '24.18.0' } })"
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(older)}` }
    const { exitCode, stderr } = await runProcess(['--version'], { folder, env })
    assert.match(
      stderr,
      /^plant-store needs Node\.js 24\.18\.1 or newer, but this is 24\.18\.0\..*npm ci[^\n]*\n$/,
    )
    assert.equal(exitCode, 78)
  })

  it('says its version', async () => {
    const { version } = JSON.parse(
      readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
    )
    assert.deepEqual(await runProcess(['--version'], { folder }), {
      exitCode: 0,
      stdout: `${version}\n`,
      stderr: '',
    })
  })

  it('shows its help on standard error if it is given no command', async () => {
    const { stdout: help } = await run(['--help'], { folder })
    assert.deepEqual(await run([], { folder }), { exitCode: 64, stdout: '', stderr: help })
  })

  it('prints the document that is committed', async () => {
    const { stdout } = await run(['openapi'], { folder })
    assert.equal(stdout, readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'))
  })
})
