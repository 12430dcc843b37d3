import { readFileSync } from 'node:fs'
import { Command, CommanderError, Option } from 'commander'
import type { CopyFlags } from './cli/copy.ts'
import type { ExportFlags } from './cli/export.ts'
import type { ImportFlags } from './cli/import.ts'
import { CommandFailed, exitCodes } from './cli/outcome.ts'
import type { Terminal } from './cli/terminal.ts'
import type { CreateFlags } from './cli/token.ts'
import { type Flags, readConfig, WrongConfig } from './config.ts'
import { UnusableStore } from './store/store.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

const terminal: Terminal = {
  version,
  input: process.stdin,
  output: process.stdout,
  print: (text) => process.stdout.write(text),
  errors: process.stderr,
}

/** Runs the command line. */
export async function main(): Promise<void> {
  try {
    await buildProgram().parseAsync(process.argv)
  } catch (error) {
    if (error instanceof CommanderError)
      process.exitCode = error.exitCode === 0 ? 0 : exitCodes.usage
    else if (error instanceof WrongConfig || error instanceof UnusableStore) {
      process.stderr.write(`${error.message}\n`)
      process.exitCode = exitCodes.config
    } else if (error instanceof CommandFailed) {
      if (error.message !== '') process.stderr.write(`${error.message}\n`)
      process.exitCode = error.exitCode
    } else throw error
  }
}

// A command is loaded when it is called, so that the small ones do not wait for the HTTP side.
function buildProgram(): Command {
  const program = new Command('plant-store')
    .description('A plant store over HTTP with JSON.')
    .version(version)
    .exitOverride()
    .showHelpAfterError()

  program
    .command('serve')
    .description('run the service')
    .option('--port <number>', 'port to listen on, 0 for a free one (PORT, 3000)')
    .option('--host <name>', 'address to listen on (HOST, 127.0.0.1)')
    .option(
      '--workers <number>',
      'processes that serve the port together; PostgreSQL only (WORKERS, 1)',
    )
    .option(...databaseFlag)
    .addHelpText('after', environmentHelp)
    .action(async (flags: Flags) => {
      const config = readConfig(flags, process.env)
      const { serve } = await import('./cli/serve.ts')
      await serve(config, terminal)
    })

  addTokenCommands(program)
  addDataCommands(program)

  program
    .command('openapi')
    .description('print the OpenAPI document')
    .option('--url <address>', 'address of the service to put into it', '/')
    .action(async ({ url }: { url: string }) => {
      const { buildOpenApi } = await import('./contract/openapi.ts')
      terminal.print(`${JSON.stringify(buildOpenApi({ baseUrl: url }), null, 2)}\n`)
    })

  return program
}

function addTokenCommands(program: Command): void {
  const token = program.command('token').description('issue, list and revoke tokens')
  token
    .command('create')
    .description('make a token and print it, once')
    .requiredOption('--name <name>', 'whose token it is')
    .option('--scope <scopes>', 'what it may do (plants:read,plants:write)')
    .option('--expires <time>', 'how long it lives, such as 12h or 90d (for ever)')
    .option('--json', 'print JSON')
    .option(...databaseFlag)
    .action(async (flags: CreateFlags & Flags) => {
      const { createToken } = await import('./cli/token.ts')
      await createToken(flags, readConfig(flags, process.env), terminal)
    })
  token
    .command('list')
    .description('list every token, without its secret')
    .option('--json', 'print JSON')
    .option(...databaseFlag)
    .action(async (flags: { json?: boolean } & Flags) => {
      const { listTokens } = await import('./cli/token.ts')
      await listTokens(flags, readConfig(flags, process.env), terminal)
    })
  token
    .command('revoke')
    .description('stop a token from working')
    .argument('<id>', 'the id that "token list" shows')
    .option('--json', 'print JSON')
    .option(...databaseFlag)
    .action(async (id: string, flags: { json?: boolean } & Flags) => {
      const { revokeToken } = await import('./cli/token.ts')
      await revokeToken(id, flags, readConfig(flags, process.env), terminal)
    })
}

function addDataCommands(program: Command): void {
  program
    .command('import')
    .description('bring the plants of a file into the store, or into a running service')
    .argument('<file>', 'NDJSON or CSV, gzipped or not; - for standard input')
    .option('--format <name>', 'ndjson or csv, where the name of the file does not say it')
    .addOption(
      new Option('--on-conflict <how>', 'what to do with a plant whose id is taken by another one')
        .choices(['fail', 'skip', 'replace'])
        .default('fail'),
    )
    .option('--rejects <file>', 'where lines go that are not taken (standard error)')
    .option('--url <address>', 'the service to bring them to, instead of a store')
    .option('--token <token>', 'the token for that service (PLANT_STORE_TOKEN)')
    .option(...quietFlag)
    .option(...databaseFlag)
    .action(async (file: string, flags: ImportFlags & Flags) => {
      const { importPlants } = await import('./cli/import.ts')
      await importPlants(file, flags, readConfig(flags, process.env), terminal)
    })
  program
    .command('export')
    .description('write every plant to a file or to standard output')
    .argument('[file]', 'where to; with .gz at its end it is gzipped', '-')
    .option('--format <name>', 'ndjson or csv, where the name of the file does not say it (ndjson)')
    .option('--tag <tag>', 'only the plants with this tag')
    .option(...quietFlag)
    .option(...databaseFlag)
    .action(async (file: string, flags: ExportFlags & Flags) => {
      const { exportPlants } = await import('./cli/export.ts')
      await exportPlants(file, flags, readConfig(flags, process.env), terminal)
    })
  program
    .command('backup')
    .description('copy the store into one file, while the service runs')
    .argument('<file>', 'a name that is free')
    .option(...quietFlag)
    .option(...databaseFlag)
    .action(async (file: string, flags: { quiet?: boolean } & Flags) => {
      const { backUp } = await import('./cli/backup.ts')
      await backUp(file, flags, readConfig(flags, process.env), terminal)
    })
  program
    .command('restore')
    .description('make a store out of a backup, where there is none')
    .argument('<file>', 'a file that "backup" made')
    .option(...databaseFlag)
    .action(async (file: string, flags: Flags) => {
      const { restoreBackup } = await import('./cli/backup.ts')
      await restoreBackup(file, readConfig(flags, process.env), terminal)
    })
  program
    .command('copy')
    .description('copy a store, tokens included, into another one, and compare them')
    .requiredOption('--from <url>', 'sqlite:PATH or postgres://…')
    .requiredOption('--to <url>', 'sqlite:PATH or postgres://…')
    .option(...quietFlag)
    .action(async (flags: CopyFlags) => {
      const { copyStore } = await import('./cli/copy.ts')
      await copyStore(flags, terminal)
    })
}

const quietFlag = ['--quiet', 'show no progress'] as const

const databaseFlag = [
  '--database <url>',
  'sqlite:PATH, sqlite::memory: or postgres://… (DATABASE_URL, sqlite:data/plant-store.db)',
] as const

const environmentHelp = `
Environment, beside PORT, HOST and DATABASE_URL:
  PLANT_STORE_TOKEN  one more token, of your choice: 20 or more visible ASCII characters
  PUBLIC_URL         the address that clients use, where it is not the one that they send
  CORS_ORIGIN        which origins may call from a browser: * (all) or a list
  TRUST_PROXY        proxies in front whose X-Forwarded-For the log believes (0)
  RATE_LIMIT         requests a token may make, such as 600/m (no limit)
  LOG_LEVEL          fatal, error, warn, info, debug, trace or silent (info)`
