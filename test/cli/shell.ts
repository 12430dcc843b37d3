import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { killAfterTest } from '../support/child.ts'
import type { Run, RunOptions } from '../support/command.ts'

const program = fileURLToPath(new URL('../../bin/plant-store.js', import.meta.url))

/** Runs a line of shell in which `plant_store` is the command: for pipes and redirections. */
export async function runShell(
  line: string,
  { folder, env = {} }: Pick<RunOptions, 'folder' | 'env'>,
): Promise<Run> {
  const command = `plant_store() { "${process.execPath}" "${program}" "$@"; }; ${line}`
  const child = spawn('sh', ['-c', command], {
    cwd: folder,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  killAfterTest(child)
  const output = [text(child.stdout), text(child.stderr)]
  const [exitCode] = await once(child, 'close')
  const [stdout = '', stderr = ''] = await Promise.all(output)
  return { exitCode, stdout, stderr }
}
