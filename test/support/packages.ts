import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { newFolder } from './folder.ts'

const root = join(import.meta.dirname, '..', '..')

/**
 * Installs what the lockfile of a folder of tests names, unless it is there. Only the test that
 * needs these packages pays for them, and not every `npm ci`.
 */
export async function installPackages(folder: string): Promise<void> {
  const lockfile = readFileSync(join(folder, 'package-lock.json'), 'utf8')
  const installed = join(folder, 'node_modules', '.installed')
  if (existsSync(installed) && readFileSync(installed, 'utf8') === lockfile) return
  await npm(folder, ['ci', '--ignore-scripts', '--prefer-offline'])
  writeFileSync(installed, lockfile)
}

/** Packs a copy of the checkout, so that its own files stay as they are. */
export async function pack(): Promise<string> {
  const copy = copyCheckout()
  await npm(copy, ['pack'])
  const [name = ''] = globSync('*.tgz', { cwd: copy })
  const tarball = join(newFolder(), 'plant-store.tgz')
  renameSync(join(copy, name), tarball)
  return tarball
}

/** What a package is made of, without what was built before. */
function copyCheckout(): string {
  const copy = newFolder()
  const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const needed = [
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'src',
    'client',
    'web',
    'build',
    'test/package',
  ]
  for (const file of [...needed, ...files, 'README.md', 'LICENSE']) {
    if (!/^!|^dist$|^THIRD-PARTY/.test(file))
      cpSync(join(root, file), join(copy, file), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  return copy
}

/** Runs npm in a folder. */
export function npm(folder: string, args: string[]): Promise<string> {
  return run('npm', folder, args)
}

/** Runs a program of Node.js. */
export function runNode(folder: string, args: string[]): Promise<string> {
  return run(process.execPath, folder, args)
}

async function run(program: string, folder: string, args: string[]): Promise<string> {
  try {
    return (await promisify(execFile)(program, args, { cwd: folder })).stdout
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    throw new Error(`${[program, ...args].join(' ')}\n${stdout}\n${stderr}`, { cause: error })
  }
}
