import { readFileSync } from 'node:fs'
import { runProgram } from './cli/program.ts'
import { buildTerminal } from './cli/terminal.ts'

/** Runs the command line. The only file that reads the arguments and the environment. */
export async function main(): Promise<void> {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  const terminal = buildTerminal({
    version,
    input: process.stdin,
    output: process.stdout,
    errors: process.stderr,
  })
  process.exitCode = await runProgram(process.argv, process.env, terminal)
}
