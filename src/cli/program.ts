import { Command, CommanderError } from 'commander'
import { type Environment, WrongConfig } from '../config.ts'
import { Failure } from '../contract/errors.ts'
import { explainSqlite, isSqliteError } from '../store/sqlite/failures.ts'
import { UnreachableStore, UnusableStore } from '../store/store.ts'
import { addCommands } from './commands.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import type { Terminal } from './terminal.ts'

const notConfirmed =
  'The store did not confirm the change, so it may or may not have been made. List what is there, then try again.'

/** Runs the command that the arguments name, and returns the exit code. */
export async function runProgram(
  argv: readonly string[],
  env: Environment,
  terminal: Terminal,
): Promise<number> {
  try {
    await parse(argv, env, terminal)
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage
    if (error instanceof WrongConfig) {
      for (const mistake of error.mistakes) terminal.tell(mistake)
      return exitCodes.config
    }
    if (error instanceof UnusableStore) {
      terminal.tell(error.message)
      return error instanceof UnreachableStore ? exitCodes.unavailable : exitCodes.config
    }
    if (error instanceof CommandFailed) {
      if (error.message !== '') terminal.tell(error.message)
      return error.exitCode
    }
    if (error instanceof Failure) {
      // The message of this number is about plants, and is for clients of the service.
      terminal.tell(error.number === 50400 ? notConfirmed : error.message)
      return exitCodes.inputOutput
    }
    if (isSqliteError(error)) {
      terminal.tell(`The store cannot be used: ${explainSqlite(error)}.`)
      return exitCodes.inputOutput
    }
    throw error
  }
}

async function parse(argv: readonly string[], env: Environment, terminal: Terminal): Promise<void> {
  const printed: Promise<void>[] = []
  const program = new Command('plant-store').configureOutput({
    writeOut: (text) => printed.push(terminal.print(text)),
    writeErr: (text) => terminal.errors.write(text),
    outputError: () => {},
  })
  addCommands(program, env, terminal)
  explainUsage(program, program.name(), terminal)
  try {
    await program.parseAsync(argv)
  } finally {
    await Promise.all(printed)
  }
}

/** Lets each command answer a mistake with one line that says where to find help. */
function explainUsage(command: Command, path: string, terminal: Terminal): void {
  command.exitOverride((error) => {
    if (error.exitCode !== 0 && error.code !== 'commander.help') {
      // What is no name of a command, and the value of a mistyped flag, may be a secret.
      const text = error.message
        .replace(/^error: /, '')
        .replace(/^(unknown command) '(?![a-z -]{1,19}').*'/s, '$1')
        .replace(/^(unknown option '[^=']*)=.*'/s, "$1'")
      const [first = '', ...rest] = text.split('\n')
      const message = `${first.charAt(0).toUpperCase()}${first.slice(1)}`
      const sentence = [message, ...rest].join(' ').replace(/\.?$/, '.')
      terminal.tell(`${sentence} See: ${path} --help`)
    }
    throw error
  })
  for (const child of command.commands) explainUsage(child, `${path} ${child.name()}`, terminal)
}
