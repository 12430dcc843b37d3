import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, linkSync, mkdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type RunOptions, runProcess, start } from '../support/command.ts'
import { findDependencies, findTitles } from '../support/dependencies.ts'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { newKey, startIssuer } from '../support/issuer.ts'
import { parseMetrics } from '../support/metrics.ts'
import { nobody } from '../support/rights.ts'
import { operatorToken } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { call, type Request } from '../support/wire.ts'

const buildProgram = fileURLToPath(new URL('../../build/executable.ts', import.meta.url))
const manifest = new URL('../../package.json', import.meta.url)
const { version } = JSON.parse(readFileSync(manifest, 'utf8'))

/** Builds the executable into a folder. */
async function build(folder: string): Promise<string> {
  const output = join(folder, 'plant-store')
  await promisify(execFile)(process.execPath, [buildProgram, '--output', output])
  return output
}

/** The libraries that a program loads, by name. */
function findLibraries(program: string): Map<string, string> {
  const { stdout } = spawnSync('ldd', [program], { encoding: 'utf8' })
  const paths = stdout.split('\n').map((line) => /(\/\S+) \(0x/.exec(line)?.[1])
  return new Map(paths.filter((path) => path !== undefined).map((path) => [basename(path), path]))
}

/** What every system has that runs programs in C++: glibc's own files, libstdc++ and libgcc. */
const usualLibraries =
  /^(ld-linux[\w-]*|lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s))\.so\.\d+$/

/** The command that runs a program with another folder as its root, and ends as that program. */
const changeRoot = [['--root'], ['--map-root-user', '--root']].find(
  (flags) => spawnSync('unshare', [...flags, '/', 'true']).status === 0,
)
const noRoot =
  changeRoot === undefined && 'unshare can change the root neither as root nor in a user namespace'
/** The executable is made of the Node.js that runs the tests. */
const needsMore =
  !process.versions.node.startsWith('24.') &&
  `an executable of Node.js ${process.versions.node} needs libatomic`
const noLdd = spawnSync('ldd', ['--version']).status !== 0 && 'there is no ldd'

describe('the executable', { concurrency: false }, () => {
  let program: [string]
  let folder: string
  before(async () => {
    folder = newFolder()
    program = [await build(folder)]
  })

  /** Starts the service in an empty environment: without node, npm and PATH. */
  async function serve(options: Partial<RunOptions> = {}, ...flags: string[]) {
    const args = ['serve', '--port', '0', ...flags]
    const service = start(args, { folder, program, ...options })
    const [, url = ''] = await service.waitFor(/address {3}(http:\S+)/)
    const send = (request: Request, token: string) => {
      const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
      return call(url, { ...request, headers })
    }
    return { ...service, url, send }
  }

  it('stores the first plant, and runs every command beside it', async () => {
    const { waitFor, send, url, child, ended } = await serve()
    const [, token = ''] = await waitFor(/token {5}(plst_\w{36})/)
    const [, body = ''] = await waitFor(/-d '(\{.*\})'/)
    const created = await send({ method: 'POST', path: '/plants', body }, token)
    assert.equal(created.body, '{"name":"Monstera deliciosa","tag":"indoor"}')
    const page = await call(url, { path: '/' })
    const [script = ''] = /assets\/page-[\w-]+\.js/.exec(page.body) ?? []
    const { status, body: code } = await call(url, { path: `/${script}` })
    assert.deepEqual({ status, isCode: code.length > 1_000 }, { status: 200, isCode: true })
    assert.equal((await call(url, { path: '/docs' })).status, 200)
    const issued = await runProcess(['token', 'create', '--name', 'me'], { folder, program })
    assert.match(issued.stdout, /^plst_\w{36}\n$/)
    assert.equal((await send({ path: '/plants/1' }, issued.stdout.trim())).status, 200)
    const exported = await runProcess(['export', '-', '--format', 'ndjson'], { folder, program })
    assert.equal(exported.stdout, '{"id":1,"name":"Monstera deliciosa","tag":"indoor"}\n')
    const backup = await runProcess(['backup', 'monday.db'], { folder, program })
    assert.match(backup.stderr, /^Backed up: 1 plant/)
    assert.equal((await runProcess(['openapi'], { folder, program })).exitCode, 0)
    child.kill('SIGTERM')
    assert.equal((await ended).exitCode, 0)
  })

  it('takes the JSON Web Tokens of an issuer', async () => {
    const key = await newKey('ES256')
    const issuer = await startIssuer([key])
    const { send } = await serve({ env: { ...issuer.env, DATABASE_URL: 'sqlite::memory:' } })
    assert.equal((await send({ path: '/plants' }, await issuer.sign(key))).status, 200)
  })

  it('prints a line that makes a token with itself', async () => {
    const { waitFor } = await serve()
    const [, command = ''] = await waitFor(/TOKEN=\$\((\S+) token create --name me\)/)
    assert.equal(command, program[0])
  })

  it('reads the store of a checkout, and the other way round', async () => {
    const here = newFolder()
    const input = '{"id":9223372036854775807,"name":"Ficus"}\n'
    const imported = ['import', '-', '--format', 'ndjson', '--create']
    await runProcess(imported, { folder: here, input })
    const first = await runProcess(['export', '-', '--format', 'csv'], { folder: here, program })
    assert.equal(first.stdout, 'id,name,tag\n9223372036854775807,Ficus,\n')
    await runProcess(imported, { folder: here, input: '{"id":1,"name":"Fern"}\n', program })
    const second = await runProcess(['export', '-', '--format', 'csv'], { folder: here })
    assert.equal(second.stdout, 'id,name,tag\n1,Fern,\n9223372036854775807,Ficus,\n')
  })

  it('serves one port with several processes', async () => {
    const env = { PLANT_STORE_TOKEN: operatorToken, DATABASE_URL: await postgres.newUrl() }
    const { child, ended, send } = await serve({ env }, '--workers', '2')
    await waitUntil(async () => {
      const { body } = await send({ path: '/metrics' }, operatorToken)
      return parseMetrics(body).get('plant_store_processes') === 2
    }, 'both processes have told their metrics')
    child.kill('SIGTERM')
    assert.equal((await ended).exitCode, 0)
  })

  it('names a store in a folder without rights', async () => {
    const here = newFolder()
    await runProcess(['token', 'create', '--name', 'me', '--create'], { folder: here, program })
    chmodSync(join(here, 'data'), 0)
    for (const open of [here, folder]) chmodSync(open, 0o755)
    // The permissions of files do not apply to root.
    const user = process.getuid?.() === 0 ? { uid: nobody } : {}
    const options = { folder: here, program, env: { PORT: '0' }, ...user }
    for (const command of ['serve', 'token list', 'webhook list', 'log', 'export -']) {
      const { exitCode, stderr } = await runProcess(command.split(' '), options)
      assert.match(stderr, /^Cannot open the database .*plant-store\.db: permission denied\.\n$/)
      assert.equal(exitCode, 78)
    }
    chmodSync(join(here, 'data'), 0o700)
  })

  it('runs where there is nothing but glibc, libstdc++ and libgcc', {
    skip: noLdd || noRoot || needsMore,
  }, async () => {
    const empty = newFolder()
    const libraries = findLibraries(program[0])
    assert.ok(libraries.has('libc.so.6'))
    for (const [name, path] of libraries) {
      assert.match(name, usualLibraries)
      mkdirSync(join(empty, dirname(path)), { recursive: true })
      copyFileSync(path, join(empty, path))
    }
    linkSync(program[0], join(empty, 'plant-store'))
    const { waitFor, send, url, child, ended } = await serve({
      folder: empty,
      program: ['unshare', ...(changeRoot ?? []), empty, '/plant-store'],
    })
    const [, token = ''] = await waitFor(/token {5}(plst_\w{36})/)
    const body = '{"id":1,"name":"Ficus"}'
    assert.equal((await send({ method: 'POST', path: '/plants', body }, token)).status, 200)
    assert.equal((await call(url, { path: '/docs' })).status, 200)
    child.kill('SIGTERM')
    assert.equal((await ended).exitCode, 0)
    assert.ok(existsSync(join(empty, 'data', 'plant-store.db')))
  })

  it('has the licences of everything inside beside it', () => {
    const text = readFileSync(join(folder, 'THIRD-PARTY-LICENSES.txt'), 'utf8')
    const { node, v8, openssl, sqlite } = process.versions
    const expected = [
      ...findDependencies(join(import.meta.dirname, '..', '..')),
      `Node.js ${node}, with V8 ${v8}, OpenSSL ${openssl} and SQLite ${sqlite}`,
    ]
    assert.ok(expected.length > 5)
    assert.deepEqual(findTitles(text).sort(), expected.sort())
    assert.match(text, /^Node\.js is licensed for use as follows:$/m)
    assert.match(text, /^Copyright Node\.js contributors/m)
  })

  it('needs no file beside it', async () => {
    const here = newFolder()
    copyFileSync(program[0], join(here, 'renamed'))
    const { stdout } = await runProcess(['--version'], {
      folder: here,
      program: [join(here, 'renamed')],
    })
    assert.equal(stdout, `${version}\n`)
  })
})
