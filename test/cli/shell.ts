import { execFileSync } from 'node:child_process'
import { closeSync, constants, existsSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Run, type RunOptions, runProcess } from '../support/command.ts'
import { releaseAfterTest } from '../support/release.ts'

const program = fileURLToPath(new URL('../../bin/plant-store.js', import.meta.url))

/** The command, as a word of a shell. */
export const command = `"${process.execPath}" "${program}"`

/** Runs a line of shell in which `plant_store` is the command: for pipes and redirections. */
export function runShell(line: string, options: RunOptions): Promise<Run> {
  const script = `plant_store() { ${command} "$@"; }; ${line}`
  const env = { PATH: String(process.env.PATH), ...options.env }
  return runProcess([], { ...options, env, program: ['/bin/sh', '-c', script] })
}

/** Makes a named pipe unless it is there, and holds its other end open until the test ends. */
export function openPipe(path: string): number {
  if (!existsSync(path)) execFileSync('mkfifo', [path])
  const pipe = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  releaseAfterTest(() => closeSync(pipe))
  return pipe
}
