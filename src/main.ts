import { runProgram } from './cli/program.ts'
import { endOnSignal } from './cli/signals.ts'
import { buildTerminal } from './cli/terminal.ts'

export interface Program {
  readonly version: string
  /** The command that runs it, as one would type it. */
  readonly command: string
}

/** Runs the command line. Only this file and executable.ts read arguments and environment. */
export async function main(program: Program): Promise<void> {
  const terminal = buildTerminal({
    ...program,
    input: process.stdin,
    output: process.stdout,
    errors: process.stderr,
  })
  endOnSignal(terminal)
  process.exitCode = await runProgram(process.argv, process.env, terminal)
}
