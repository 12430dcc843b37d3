import { fileURLToPath } from 'node:url'
import { type Run, type RunOptions, runProcess } from '../support/command.ts'

const program = fileURLToPath(new URL('../../bin/plant-store.js', import.meta.url))

/** The command, as a word of a shell. */
export const command = `"${process.execPath}" "${program}"`

/** Runs a line of shell in which `plant_store` is the command: for pipes and redirections. */
export function runShell(line: string, options: RunOptions): Promise<Run> {
  const script = `plant_store() { ${command} "$@"; }; ${line}`
  const env = { PATH: String(process.env.PATH), ...options.env }
  return runProcess([], { ...options, env, program: ['/bin/sh', '-c', script] })
}
