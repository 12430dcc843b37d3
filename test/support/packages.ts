import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

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
