import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import type { Terminal } from './cli/terminal.ts'
import type { CreateFlags } from './cli/token.ts'
import { type Flags, readConfig, WrongConfig } from './config.ts'
import { UnusableStore } from './store/store.ts'

// Exit codes of sysexits.h.
const usageError = 64
const configError = 78

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

const terminal: Terminal = {
  version,
  print: (text) => process.stdout.write(text),
  errors: process.stderr,
}

/** Runs the command line. */
export async function main(): Promise<void> {
  try {
    await buildProgram().parseAsync(process.argv)
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : usageError
    else if (error instanceof WrongConfig || error instanceof UnusableStore) {
      process.stderr.write(`${error.message}\n`)
      process.exitCode = configError
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

const databaseFlag = [
  '--database <url>',
  'sqlite:PATH, sqlite::memory: or postgres://… (DATABASE_URL, sqlite:data/plant-store.db)',
] as const

const environmentHelp = `
Environment, beside PORT, HOST and DATABASE_URL:
  PLANT_STORE_TOKEN  one more token, of your choice: 20 or more visible ASCII characters
  PUBLIC_URL         the address that clients use, where it is not the one that they send
  CORS_ORIGIN        which origins may call from a browser: * (all) or a list
  LOG_LEVEL          fatal, error, warn, info, debug, trace or silent (info)`
