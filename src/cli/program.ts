import { setFlagsFromString } from 'node:v8'
import { type Environment, readStoreConfig, requireUrl, WrongConfig } from '../config.ts'
import { Failure } from '../contract/errors.ts'
import { explainSqlite, isSqliteError } from '../store/sqlite/failures.ts'
import { UnreachableStore, UnusableStore } from '../store/store.ts'
import { type CommonValues, readArguments, unknownWord } from './arguments.ts'
import { type Command, commands, type Functions, groups, type Printed } from './commands.ts'
import { toHelp } from './help.ts'
import { endBy } from './signals.ts'
import { noStore, requireAsked, withStore } from './stores.ts'
import { CommandFailed, exitCodes, type Terminal, toTime } from './terminal.ts'

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

/** Finds the command or the group that the first words name, and runs it or explains it. */
async function runWords(
  given: readonly string[],
  env: Environment,
  terminal: Terminal,
): Promise<void> {
  const [first = ''] = given
  if (['-V', '--version'].includes(first)) return terminal.print(`${terminal.version}\n`)
  const words = first === 'help' ? [...given.slice(1), '--help'] : given
  const isName = (name: string) => commands.has(name) || groups.has(name)
  const length = [2, 1].find((count) => isName(words.slice(0, count).join(' '))) ?? 0
  const name = words.slice(0, length).join(' ')
  const rest = words.slice(length)
  const [next] = rest
  if (first === 'help' && rest.length > 1 && !next?.startsWith('-'))
    throw unknownWord('command', next ?? '', name)
  const command = commands.get(name)
  const read = command && readArguments(rest, name, command)
  if (command && read) return runCommand(name, command, read, env, terminal)
  if (command || next === '-h' || next === '--help') return terminal.print(toHelp(name))
  if (next !== undefined) throw unknownWord(next.startsWith('-') ? 'option' : 'command', next, name)
  terminal.errors.write(toHelp(name))
  throw new CommandFailed(exitCodes.usage, '')
}

/** The functions of the commands, loaded one by one: most need no HTTP server. */
const functions: Functions = {
  serve: async () => (await import('./serve.ts')).serve,
  ready: async () => (await import('./ready.ts')).askReadiness,
  openapi: async () => {
    const { printOpenApi } = await import('../contract/openapi.ts')
    return async ({ flags: { url = '/' } }) => {
      const baseUrl = url.startsWith('/') ? url : requireUrl('--url', url)
      return { text: printOpenApi({ baseUrl }) }
    }
  },
  'token create': async () => (await import('./tokens.ts')).createToken,
  'token list': async () => (await import('./tokens.ts')).listTokens,
  'token revoke': async () => (await import('./tokens.ts')).revokeToken,
  'token prune': async () => (await import('./tokens.ts')).pruneTokens,
  'webhook add': async () => (await import('./webhook-receivers.ts')).addReceiver,
  'webhook list': async () => (await import('./webhook-receivers.ts')).listReceivers,
  'webhook failures': async () => (await import('./webhook-receivers.ts')).listFailures,
  'webhook resend': async () => (await import('./webhook-receivers.ts')).resend,
  'webhook test': async () => (await import('./webhook-receivers.ts')).testReceiver,
  'webhook rotate': async () => (await import('./webhook-receivers.ts')).rotateSecret,
  'webhook pause': async () => (await import('./webhook-receivers.ts')).pauseReceiver,
  'webhook resume': async () => (await import('./webhook-receivers.ts')).resumeReceiver,
  'webhook remove': async () => (await import('./webhook-receivers.ts')).removeReceiver,
  import: async () => (await import('./import-plants.ts')).importPlants,
  export: async () => (await import('./export-plants.ts')).exportPlants,
  backup: async () => (await import('./backups.ts')).backUp,
  restore: async () => (await import('./backups.ts')).restoreBackup,
  check: async () => (await import('./stores.ts')).checkStore,
  log: async () => (await import('./log.ts')).showLog,
  copy: async () => (await import('./copy-store.ts')).copyStore,
}

/** Gives a command what it needs, prints what it returns, and closes what was opened. */
async function runCommand(
  name: string,
  { needs, v8 = [], flags: { create: mayCreate } }: Command,
  { args, flags }: { readonly args: readonly string[]; readonly flags: CommonValues },
  env: Environment,
  terminal: Terminal,
): Promise<void> {
  for (const flag of v8) setFlagsFromString(flag)
  const run = (await functions[name as keyof Functions]()) as (call: object) => Promise<Printed>
  const call = { args, flags, env, terminal }

  async function runWith(given: object): Promise<void> {
    const printed = await run({ ...call, ...given }).finally(() => terminal.showBar(''))
    await print(printed, flags, terminal)
  }

  if (needs === 'nothing') return runWith({})
  const config = readStoreConfig(flags, env)
  if (needs === 'location') return runWith({ config })

  function onNew(): void {
    if (!mayCreate) throw noStore(config)
    requireAsked(config, flags)
  }

  await withStore(config.storeLocation, (store) => runWith({ config, store }), { onNew })
}

/** Prints what a command has returned, and ends as it says. */
async function print(
  { text, json, note, remarks = [], undo, failure, stoppedBy }: Printed,
  flags: CommonValues,
  terminal: Terminal,
): Promise<void> {
  const result = flags.json && json !== undefined ? toJson(json) : text
  if (result) await terminal.print(result.endsWith('\n') ? result : `${result}\n`, undo)
  else if (note !== undefined && !flags.quiet) terminal.tell(note)
  for (const remark of remarks) terminal.tell(remark)
  if (stoppedBy !== undefined) endBy(stoppedBy)
  if (failure !== undefined) throw failure
}

/** JSON for programs: times in RFC 3339, and null for what is not known. */
function toJson(value: unknown): string {
  const isTime = (name: string) => name === 'at' || /(At|Until)$/.test(name)
  const toMember = (name: string, member: unknown) =>
    typeof member === 'number' && isTime(name) ? toTime(member) : (member ?? null)
  return JSON.stringify(value, toMember, 2)
}
