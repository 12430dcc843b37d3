import { type Command, Option } from 'commander'
import {
  type Config,
  type Environment,
  type Flags,
  readConfig,
  readStoreConfig,
  requireUrl,
  type StoreConfig,
} from '../config.ts'
import type { CopyFlags } from './copy.ts'
import {
  createFlag,
  databaseFlag,
  environmentHelp,
  inMemory,
  jsonFlag,
  passwordHelp,
  quietFlag,
  servedDatabaseFlag,
} from './flags.ts'
import { addGoneCommands, goneUrlOfImport } from './gone.ts'
import type { Context, Terminal } from './terminal.ts'

/**
 * Adds every command. The code of each is loaded when it is called, so that small commands start
 * without the HTTP server.
 */
export function addCommands(program: Command, env: Environment, terminal: Terminal): void {
  program
    .description('A plant store over HTTP with JSON.')
    .version(terminal.version)
    .configureHelp({ sortOptions: true })
  addServiceCommands(program, env, terminal)
  addTokenCommands(program, env, terminal)
  addWebhookCommands(program, env, terminal)
  addStoreCommands(program, env, terminal)
  addGoneCommands(program)
  addHelp(program)
}

/** The help of any command. Commander's own shows the help of a group for its commands. */
function addHelp(program: Command): void {
  program
    .helpCommand(false)
    .command('help')
    .description('show the help of a command')
    .argument('[command...]', 'the command, such as token create')
    .action((names: readonly string[]) => {
      let found: Command | undefined = program
      for (const name of names) found = found?.commands.find((one) => one.name() === name)
      if (found === undefined) program.error(`error: unknown command '${names.join(' ')}'`)
      else found.help()
    })
}

function addServiceCommands(program: Command, env: Environment, terminal: Terminal): void {
  const addServing = addTo(program, env, terminal, needsService)
  const add = addTo(program, env, terminal, needsNothing)

  addServing('serve', async () => (await import('./serve.ts')).serve)
    .description('run the service')
    .option('--port <number>', 'port to listen on, 0 for a free one (PORT, 3000)')
    .option('--host <name>', 'address to listen on (HOST, 127.0.0.1)')
    .option('--workers <number>', 'processes that share the port; PostgreSQL only (WORKERS, 1)')
    .option('--must-exist', 'fail if there is no store, instead of making one')
    .addOption(
      new Option('--demo', 'serve a dozen plants from memory, to try or to test against')
        .implies({ database: inMemory })
        .conflicts('mustExist'),
    )
    .option(
      '--until-stdin-ends',
      'stop when standard input ends, as it does when the parent process dies',
    )
    .addHelpText('after', environmentHelp)

  add('ready', async () => (await import('./ready.ts')).askReadiness)
    .description('ask a running service whether it is ready; exits with 0 or 1')
    .option('--url <address>', 'its address (from HOST and PORT)')
    .option('--wait <time>', 'how long to wait for that, such as 30s (0s)')
    .option('--pid <id>', 'its process: stop waiting once it has ended')

  program
    .command('openapi')
    .description('print the OpenAPI document')
    .option('--url <address>', 'address of the service, for the document', '/')
    .action(async ({ url }: { url: string }) => {
      const baseUrl = url.startsWith('/') ? url : requireUrl('--url', url)
      const { printOpenApi } = await import('../contract/openapi.ts')
      await terminal.print(printOpenApi({ baseUrl }))
    })
}

function addTokenCommands(program: Command, env: Environment, terminal: Terminal): void {
  const token = program.command('token').description('create, list, revoke and prune tokens')
  const add = addTo(token, env, terminal, needsStore)

  add('create', async () => (await import('./tokens.ts')).createToken)
    .description('make a token and print it, once')
    .requiredOption('--name <name>', 'whose token it is')
    .option('--scope <scopes>', 'what it may do (plants:read,plants:write)')
    .option('--expires <time>', 'how long it is valid, such as 12h, 90d, 1y or 2030-01-31 (no end)')
    .option(...createFlag)
    .option(...jsonFlag)

  add('list', async () => (await import('./tokens.ts')).listTokens)
    .description('list every token, without its secret')
    .option(...jsonFlag)

  add('revoke', async () => (await import('./tokens.ts')).revokeToken)
    .description('stop a token from working')
    .argument('<id>', 'the id that "token list" shows, or the token itself; - for standard input')
    .option(...jsonFlag)

  add('prune', async () => (await import('./tokens.ts')).pruneTokens)
    .description('forget the tokens that are expired or revoked')
    .option(...jsonFlag)
}

function addWebhookCommands(program: Command, env: Environment, terminal: Terminal): void {
  const webhook = program.command('webhook').description('send changes to other services')
  const add = addTo(webhook, env, terminal, needsStore)

  add('add', async () => (await import('./webhooks.ts')).addReceiver)
    .description('add a receiver and print its signing secret, once')
    .argument('<url>', 'where to send changes: http or https, without a password')
    .option('--types <types>', 'plant.created, plant.replaced, plant.deleted (plant.created)')
    .option('--from <position>', 'a position in the journal, or latest (latest)')
    .option(...createFlag)
    .option(...jsonFlag)

  add('list', async () => (await import('./receivers.ts')).listReceivers)
    .description('list every receiver, its progress and its last failure')
    .option(...jsonFlag)

  addForOne('failures', 'list the changes that a receiver did not take', (all) => all.listFailures)
  addForOne(
    'resend',
    'send every failure again, or one change of the journal',
    (all) => all.resend,
  ).argument('[position]', 'the position of a change that is still kept (all failures)')
  addForOne('test', 'send a signed sample, and print what came back', (all) => all.testReceiver)
  addForOne(
    'rotate',
    'make a new secret and print it, once; the old one signs as well for 24 h',
    (all) => all.rotateSecret,
  )
  addForOne('pause', 'send nothing more until the receiver is resumed', (all) => all.pauseReceiver)
  addForOne('resume', 'continue where a paused receiver stopped', (all) => all.resumeReceiver)
  addForOne('remove', 'remove a receiver and its pending deliveries', (all) => all.removeReceiver)

  /** Adds a command about one receiver. */
  function addForOne<Given extends readonly unknown[]>(
    name: string,
    description: string,
    choose: (all: typeof import('./webhooks.ts')) => Run<Given, StoreConfig>,
  ): Command {
    return add(name, async () => choose(await import('./webhooks.ts')))
      .description(description)
      .argument('<id>', 'the id that "webhook list" shows')
      .option(...jsonFlag)
  }
}

function addStoreCommands(program: Command, env: Environment, terminal: Terminal): void {
  const add = addTo(program, env, terminal, needsStore)

  add('import', async () => (await import('./import.ts')).importPlants)
    .description('import the plants of a file into the store')
    .argument('<file>', 'NDJSON, CSV or TSV, gzipped or not; - for standard input')
    .option('--format <name>', 'ndjson or csv, if the name of the file does not say')
    .option('--delimiter <name>', 'comma, semicolon, tab or a character (as the header shows)')
    .addOption(
      new Option('--on-conflict <rule>', 'for an id whose plant has different content')
        .choices(['fail', 'skip', 'replace'])
        .default('fail'),
    )
    .option('--rejects <file>', 'where rejected lines go: as CSV from CSV (standard error)')
    .option('--dry-run', 'report what the import would do, and store nothing')
    .addOption(goneUrlOfImport)
    .option(...createFlag)
    .option(...quietFlag)

  add('export', async () => (await import('./export.ts')).exportPlants)
    .description('write every plant to a file or to standard output')
    .argument('[file]', 'the file; a name that ends in .gz is gzipped', '-')
    .option('--format <name>', 'ndjson or csv, if the name of the file does not say (ndjson)')
    .option('--delimiter <name>', 'comma, semicolon or tab, for CSV (comma; tab in .tsv)')
    .option('--spreadsheet', 'CSV to open in a spreadsheet, which runs no formula; not for import')
    .option('--tag <tag>', 'only plants with this tag')
    .option(...quietFlag)

  add('backup', async () => (await import('./backup.ts')).backUp)
    .description('copy the store into one file, while the service runs')
    .argument('<file>', 'a new file; with .gz at its end it is gzipped; - for standard output')
    .option('--keep <number>', 'make it in the folder <file>, and keep only this many there')
    .option(...quietFlag)

  add('restore', async () => (await import('./restore.ts')).restoreBackup)
    .description('make a store from a backup, where there is none')
    .argument('<file>', 'a file that "backup" made, gzipped or not; - for standard input')
    .option(...quietFlag)

  add('check', async () => (await import('./stores.ts')).checkStore)
    .description('check the store and say what to do; exits with 1 if it finds a problem')
    .option(...jsonFlag)

  add('log', async () => (await import('./log.ts')).showLog)
    .description('show which token changed which plant, from the journal')
    .option('--plant <id>', 'only changes of this plant')
    .option('--token <id>', 'only changes by this token, as "token list" shows it')
    .option('--since <time>', 'only changes of the last 30m, 2h, 7d and so on')
    .option('--limit <number>', 'only the last changes, this many (all)')
    .option('--follow', 'keep printing changes as they are made, until Ctrl-C')
    .option(...jsonFlag)

  program
    .command('copy')
    .description('copy a store, tokens included, into another one, and compare them')
    .requiredOption('--from <url>', 'sqlite:PATH or postgres://…')
    .requiredOption('--to <url>', 'sqlite:PATH or postgres://…')
    .option(...quietFlag)
    .addHelpText('after', passwordHelp)
    .action(async (flags: CopyFlags) => {
      const { copyStore } = await import('./copy.ts')
      await copyStore(flags, env, terminal)
    })
}

/** A command takes its arguments and flags, and the context. */
export type Run<Given extends readonly unknown[], Settings> = (
  ...all: [...Given, context: Context<Settings>]
) => Promise<void>

/** The settings that a command needs. It reads no others: a mistake in them does not matter. */
interface Needs<Settings> {
  readonly read: (flags: Flags, env: Environment) => Settings
  readonly flag?: readonly [flag: string, text: string]
}

const needsNothing: Needs<undefined> = { read: () => undefined }
const needsStore: Needs<StoreConfig> = { read: readStoreConfig, flag: databaseFlag }
const needsService: Needs<Config> = { read: readConfig, flag: servedDatabaseFlag }

/** Adds commands to a group, all with the same needs. */
function addTo<Settings>(
  group: Command,
  env: Environment,
  terminal: Terminal,
  needs: Needs<Settings>,
) {
  return <Given extends readonly unknown[]>(
    name: string,
    load: () => Promise<Run<Given, Settings>>,
  ) => {
    const command = group.command(name)
    if (needs.flag !== undefined) command.option(...needs.flag)
    return command.action(async (...given: unknown[]) => {
      // Commander adds the command itself after the arguments and the flags.
      const own = given.slice(0, -1)
      const run = await load()
      const config = needs.read(own.at(-1) as Flags, env)
      await run(...(own as unknown as Given), { config, env, terminal })
    })
  }
}
