import { type Environment, readConfig, readStoreConfig, WrongConfig } from '../config.ts'
import { Failure } from '../contract/errors.ts'
import { explainSqlite, isSqliteError } from '../store/sqlite/failures.ts'
import { UnreachableStore, UnusableStore } from '../store/store.ts'
import { type Arguments, readArguments, unknown } from './arguments.ts'
import { type Command, type Printed, print } from './command.ts'
import { commands, groups } from './commands.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import { inMemory } from './flags.ts'
import { gone, goneCommands } from './gone.ts'
import { listCommands, toHelp } from './help.ts'
import { noStore, requireExisting, requireExistingOrNamed, withStore } from './stores.ts'
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
    await runWords(argv.slice(2), env, terminal)
    return 0
  } catch (error) {
    const [exitCode, ...lines] = explain(error)
    for (const line of lines) if (line !== '') terminal.tell(line)
    return exitCode
  }
}

/** The exit code of an error, and what the operator is told about it. */
function explain(error: unknown): [exitCode: number, ...lines: string[]] {
  if (error instanceof WrongConfig) return [exitCodes.config, ...error.mistakes]
  if (error instanceof UnreachableStore) return [exitCodes.unavailable, error.message]
  if (error instanceof UnusableStore) return [exitCodes.config, error.message]
  if (error instanceof CommandFailed) return [error.exitCode, error.message]
  if (error instanceof Failure) {
    // The message of this number is about plants, and is for clients of the service.
    return [exitCodes.inputOutput, error.number === 50400 ? notConfirmed : error.message]
  }
  if (!isSqliteError(error)) throw error
  return [exitCodes.inputOutput, `The store cannot be used: ${explainSqlite(error)}.`]
}

/** Finds the command that the words name, and runs it. */
async function runWords(
  words: readonly string[],
  env: Environment,
  terminal: Terminal,
): Promise<void> {
  const [first = ''] = words
  if (first === 'help') return terminal.print(requireHelp(words.slice(1).join(' ')))
  if (['-V', '--version'].includes(first)) return terminal.print(`${terminal.version}\n`)
  const instead = goneCommands.get(first)
  if (instead !== undefined) throw gone(first, instead)
  const length = [2, 1].find((count) => isName(words.slice(0, count).join(' '))) ?? 0
  const name = words.slice(0, length).join(' ')
  const rest = words.slice(length)
  const command = commands.get(name)
  if (command === undefined) return explainGroup(name, rest[0], terminal)
  const given = readArguments(rest, name, command)
  if (given === undefined) return terminal.print(requireHelp(name))
  await runCommand(command, given, env, terminal)
}

function isName(words: string): boolean {
  return commands.has(words) || groups.has(words)
}

function requireHelp(name: string): string {
  const help = toHelp(name)
  if (help === undefined) throw unknown('command', name, [], '')
  return help
}

/** Answers words that name a group, or nothing. */
async function explainGroup(name: string, next: string | undefined, terminal: Terminal) {
  const help = requireHelp(name)
  if (next === '-h' || next === '--help') return terminal.print(help)
  if (next === undefined) {
    terminal.errors.write(help)
    throw new CommandFailed(exitCodes.usage, '')
  }
  const known = listCommands(name).map(([usage]) => usage.split(' ', 1).join())
  throw unknown(next.startsWith('-') ? 'option' : 'command', next, known, name)
}

/** Gives a command what it needs, prints what it returns, and closes what was opened. */
async function runCommand(
  { needs, load }: Command,
  { args, flags }: Arguments,
  env: Environment,
  terminal: Terminal,
): Promise<void> {
  const run = (await load()) as (call: unknown) => Promise<Printed>
  const call = { args, flags, env, terminal }
  const runWith = async (given: object) => print(await run({ ...call, ...given }), flags, terminal)
  if (needs === 'nothing') return runWith({})
  if (needs === 'service') {
    const implied = flags.demo ? { database: inMemory } : {}
    return runWith({ config: readConfig({ ...implied, ...flags }, env) })
  }
  const config = readStoreConfig(flags, env)
  if (needs === 'location') return runWith({ config })
  const onNew = () => {
    if (needs === 'store') throw noStore(config)
  }
  if (needs === 'store') requireExisting(config)
  else requireExistingOrNamed(config, flags)
  await withStore(config.storeLocation, (store) => runWith({ config, store }), { onNew })
}
