/**
 * Makes dist/plant-store: the service, its command line and Node.js in one file that needs nothing
 * beside it to run, for this platform. The licences of everything inside go into another file
 * beside it.
 */
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { buildAssets, embeddedFolder } from '../web/assets.ts'
import {
  collectLicenses,
  findNodeLicense,
  licensesName,
  toNodeLicense,
  writeLicenses,
} from './licenses.ts'

const root = join(import.meta.dirname, '..')
const fileName = process.platform === 'win32' ? 'plant-store.exe' : 'plant-store'
const { values } = parseArgs({
  options: {
    output: { type: 'string', default: join(root, 'dist', fileName) },
    /** The file LICENSE of Node.js: its package for Windows does not bring one. */
    'node-license': { type: 'string' },
  },
})
const { output } = values
const postject = join(root, 'node_modules', 'postject', 'dist', 'cli.js')
/** Node.js looks for these names in itself when it starts. */
const postjectFlags = [
  ...['--sentinel-fuse', 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'],
  ...['--macho-segment-name', 'NODE_SEA'],
]
const folder = mkdtempSync(join(tmpdir(), 'plant-store-build-'))
try {
  await buildExecutable()
  const megabytes = Math.round(statSync(output).size / 1e6)
  console.log(`${output}: ${megabytes} MB, with Node.js ${process.versions.node}`)
} finally {
  rmSync(folder, { recursive: true })
}

async function buildExecutable(): Promise<void> {
  const assets: Record<string, string> = { 'package.json': join(root, 'package.json') }
  for (const { name, bytes } of buildAssets().values()) {
    assets[embeddedFolder + name] = write(name.replaceAll('/', '-'), bytes)
  }
  const blob = join(folder, 'blob')
  const config = {
    main: await bundle('src/executable.ts', 'main.js'),
    mainFormat: 'commonjs',
    output: blob,
    disableExperimentalSEAWarning: true,
    // Compiled code starts twice as fast. Node takes it for this format of the main program only.
    useCodeCache: true,
    // Both as in `npm start`. V8 would let its young generation grow to 128 MB.
    execArgv: ['--disable-sigusr1', '--max-semi-space-size=16'],
    assets,
  }
  run(process.execPath, '--experimental-sea-config', write('sea.json', JSON.stringify(config)))
  mkdirSync(join(output, '..'), { recursive: true })
  copyFileSync(process.execPath, output)
  const isMac = process.platform === 'darwin'
  // macOS runs no file whose signature is wrong.
  if (isMac) run('codesign', '--remove-signature', output)
  run(process.execPath, postject, output, 'NODE_SEA_BLOB', blob, ...postjectFlags)
  if (isMac) run('codesign', '--sign', '-', output)
  writeFileSync(join(output, '..', licensesName), readLicenses())
}

function readLicenses(): string {
  const file = values['node-license']
  const node = file === undefined ? findNodeLicense() : [toNodeLicense(readFileSync(file, 'utf8'))]
  if (node.length === 0) {
    throw new Error('There is no LICENSE beside this Node.js: name one with --node-license FILE.')
  }
  return writeLicenses([...collectLicenses(root), ...node])
}

function run(program: string, ...args: string[]): void {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed: ${stdout}${stderr}`)
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
