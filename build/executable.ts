/**
 * Makes dist/plant-store: the service, its command line and Node.js in one file that needs nothing
 * beside it. For the platform that it runs on.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { manifestName } from '../src/embedded.ts'
import { buildAssets, embeddedFolder } from '../src/web/assets.ts'

const root = join(import.meta.dirname, '..')
const { values } = parseArgs({
  options: {
    output: { type: 'string', default: join(root, 'dist', 'plant-store') },
  },
})
const { output } = values
const folder = mkdtempSync(join(tmpdir(), 'plant-store-build-'))
try {
  await buildExecutable()
  const megabytes = Math.round(statSync(output).size / 1e6)
  console.log(`${output}: ${megabytes} MB, with Node.js ${process.versions.node}`)
} finally {
  rmSync(folder, { recursive: true })
}

async function buildExecutable(): Promise<void> {
  const assets: Record<string, string> = {
    'package.json': join(root, 'package.json'),
    'thread-program.js': await bundle('src/store/sqlite/thread-program.ts', 'thread-program.js'),
  }
  for (const { name, bytes } of buildAssets().values()) {
    assets[embeddedFolder + name] = write(name.replaceAll('/', '-'), bytes)
  }
  const manifest = write(manifestName, JSON.stringify(Object.keys(assets)))
  mkdirSync(join(output, '..'), { recursive: true })
  const config = {
    main: await bundle('src/executable.ts', 'main.js'),
    mainFormat: 'commonjs',
    output,
    disableExperimentalSEAWarning: true,
    // Compiled code starts twice as fast. Node takes it for this format of the main program only.
    useCodeCache: true,
    execArgv: ['--disable-sigusr1'],
    assets: { ...assets, [manifestName]: manifest },
  }
  const file = write('sea.json', JSON.stringify(config))
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--build-sea', file], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`node --build-sea failed: ${stdout}${stderr}`)
}

/** Joins a program and everything that it imports into one script. */
async function bundle(entry: string, name: string): Promise<string> {
  const outfile = join(folder, name)
  await build({
    entryPoints: [join(root, entry)],
    outfile,
    bundle: true,
    platform: 'node',
    target: `node${process.versions.node}`,
    format: 'cjs',
    // Nothing is beside an executable: a file that is looked for there is a mistake.
    define: { 'import.meta.url': 'undefined' },
    legalComments: 'eof',
    logLevel: 'warning',
  })
  return outfile
}

function write(name: string, text: string | Buffer): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
