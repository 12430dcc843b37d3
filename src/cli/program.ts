import { CommanderError, Command as Parser } from 'commander'
import { type Environment, readConfig, readStoreConfig, WrongConfig } from '../config.ts'
import { Failure } from '../contract/errors.ts'
import { explainSqlite, isSqliteError } from '../store/sqlite/failures.ts'
import { UnreachableStore, UnusableStore } from '../store/store.ts'
import { type Command, type CommonValues, type Need, type Printed, print } from './command.ts'
import { commands, groups } from './commands.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import { type Flag, readFlags, text } from './flags.ts'
import { gone, goneCommands } from './gone.ts'
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
    await parse(argv, env, terminal)
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage
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

async function parse(argv: readonly string[], env: Environment, terminal: Terminal): Promise<void> {
  const printed: Promise<void>[] = []
  const program = new Parser('plant-store').configureOutput({
    writeOut: (text) => printed.push(terminal.print(text)),
    writeErr: (text) => terminal.errors.write(text),
    outputError: () => {},
  })
  program
    .description('A plant store over HTTP with JSON.')
    .version(terminal.version)
    .configureHelp({ sortOptions: true })
  for (const [name, command] of Object.entries(commands)) {
    const [first = '', second] = name.split(' ')
    const parent = second === undefined ? program : findGroup(program, first)
    addCommand(parent, second ?? first, command, env, terminal)
  }
  addGoneCommands(program)
  addHelp(program)
  explainUsage(program, program.name(), terminal)
  try {
    await program.parseAsync(argv)
  } finally {
    await Promise.all(printed)
  }
}

function findGroup(program: Parser, name: string): Parser {
  const found = program.commands.find((one) => one.name() === name)
  return found ?? program.command(name).description(groups[name] ?? '')
}

/** Tells the parser about a command of the table. */
function addCommand(
  parent: Parser,
  name: string,
  command: Command,
  env: Environment,
  terminal: Terminal,
): void {
  const parser = parent.command(name).description(command.about)
  for (const [argument, about] of Object.entries(command.args ?? {})) {
    parser.argument(argument, about)
  }
  const flags = { ...databaseFlags[command.needs], ...command.flags }
  for (const { form, about, isRequired = false, tune } of Object.values(flags)) {
    const option = parser.createOption(form, about).makeOptionMandatory(isRequired)
    parser.addOption(tune === undefined ? option : tune(option))
  }
  if (command.help !== undefined) parser.addHelpText('after', command.help)
  parser.action(async () => {
    const values = readFlags(flags, parser.opts())
    await runCommand(command, parser.args, values, env, terminal)
  })
}

const defaultStore = '(DATABASE_URL, sqlite:data/plant-store.db)'
const database = text('--database <url>', `sqlite:PATH or postgres://… ${defaultStore}`)
// Only the service can use a store in memory.
const servedDatabase = text(
  '--database <url>',
  `sqlite:PATH, sqlite::memory: or postgres://… ${defaultStore}`,
)

const databaseFlags: Record<Need, Record<string, Flag<unknown>>> = {
  nothing: {},
  location: { database },
  store: { database },
  'new store': { database },
  service: { database: servedDatabase },
}

/** Gives a command what it needs, prints what it returns, and closes what was opened. */
async function runCommand(
  { needs, load }: Command,
  args: readonly string[],
  flags: CommonValues,
  env: Environment,
  terminal: Terminal,
): Promise<void> {
  const run = (await load()) as (call: unknown) => Promise<Printed>
  const call = { args, flags, env, terminal }
  const runWith = async (given: object) => print(await run({ ...call, ...given }), flags, terminal)
  if (needs === 'nothing') return runWith({})
  if (needs === 'service') return runWith({ config: readConfig(flags, env) })
  const config = readStoreConfig(flags, env)
  if (needs === 'location') return runWith({ config })
  const onNew = () => {
    if (needs === 'store') throw noStore(config)
  }
  if (needs === 'store') requireExisting(config)
  else requireExistingOrNamed(config, flags)
  await withStore(config.storeLocation, (store) => runWith({ config, store }), { onNew })
}

/** Lets a command that is gone answer, whatever its arguments are, with what to use instead. */
function addGoneCommands(program: Parser): void {
  for (const [name, instead] of Object.entries(goneCommands)) {
    program
      .command(name, { hidden: true })
      .description(gone(name, instead).message)
      .argument('[any...]')
      .allowUnknownOption()
      .helpOption(false)
      .action(() => {
        throw gone(name, instead)
      })
  }
}

/** The help of any command. Commander's own shows the help of a group for its commands. */
function addHelp(program: Parser): void {
  program
    .helpCommand(false)
    .command('help')
    .description('show the help of a command')
    .argument('[command...]', 'the command, such as token create')
    .action((names: readonly string[]) => {
      let found: Parser | undefined = program
      for (const name of names) found = found?.commands.find((one) => one.name() === name)
      if (found === undefined) program.error(`error: unknown command '${names.join(' ')}'`)
      else found.help()
    })
}

/** Lets each command answer a mistake with one line that says where to find help. */
function explainUsage(command: Parser, path: string, terminal: Terminal): void {
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
