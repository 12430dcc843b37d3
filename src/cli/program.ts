import { Command, CommanderError } from 'commander'
import { type Environment, type Flags, readConfig, WrongConfig } from '../config.ts'
import { explainSqlite, isSqliteError } from '../store/sqlite/failures.ts'
import { UnusableStore } from '../store/store.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import { databaseFlag } from './flags.ts'
import { addImportCommand } from './import/command.ts'
import { addLogCommand } from './log/command.ts'
import type { ReadyFlags } from './serve/ready.ts'
import { addStoreCommands } from './stores/commands.ts'
import type { Terminal } from './terminal.ts'
import { addTokenCommands } from './tokens/commands.ts'
import { addWebhookCommands } from './webhooks/commands.ts'

/** Runs the command that the arguments name, and answers the exit code. */
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
      return exitCodes.config
    }
    if (error instanceof CommandFailed) {
      if (error.message !== '') terminal.tell(error.message)
      return error.exitCode
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

// Each command is loaded when it is called: the small ones start without the HTTP side.
function addCommands(program: Command, env: Environment, terminal: Terminal): void {
  program.description('A plant store over HTTP with JSON.').version(terminal.version)

  program
    .command('serve')
    .description('run the service')
    .option('--port <number>', 'port to listen on, 0 for a free one (PORT, 3000)')
    .option('--host <name>', 'address to listen on (HOST, 127.0.0.1)')
    .option('--workers <number>', 'processes that share the port; PostgreSQL only (WORKERS, 1)')
    .option(...databaseFlag)
    .addHelpText('after', environmentHelp)
    .action(async (flags: Flags) => {
      const config = readConfig(flags, env)
      const { serve } = await import('./serve/serve.ts')
      await serve(config, terminal)
    })

  program
    .command('ready')
    .description('ask a running service whether it is ready; ends with 0 or 1')
    .option('--url <address>', 'its address (that of HOST and PORT)')
    .option('--wait <time>', 'how long to wait until it is, such as 30s (0s)')
    .action(async (flags: ReadyFlags) => {
      const { askReadiness } = await import('./serve/ready.ts')
      await askReadiness(flags, readConfig({}, env), terminal)
    })

  addTokenCommands(program, env, terminal)
  addWebhookCommands(program, env, terminal)
  addImportCommand(program, env, terminal)
  addStoreCommands(program, env, terminal)
  addLogCommand(program, env, terminal)

  program
    .command('openapi')
    .description('print the OpenAPI document')
    .option('--url <address>', 'address of the service, for the document', '/')
    .action(async ({ url }: { url: string }) => {
      const { buildOpenApi } = await import('../contract/openapi.ts')
      await terminal.print(`${JSON.stringify(buildOpenApi({ baseUrl: url }), null, 2)}\n`)
    })
}

/** Lets each command answer a mistake with one line that says where to find help. */
function explainUsage(command: Command, path: string, terminal: Terminal): void {
  command.exitOverride((error) => {
    if (error.exitCode !== 0 && error.code !== 'commander.help') {
      const [first = '', ...rest] = error.message.replace(/^error: /, '').split('\n')
      const message = `${first.charAt(0).toUpperCase()}${first.slice(1)}`
      const sentence = [message, ...rest].join(' ').replace(/\.?$/, '.')
      terminal.tell(`${sentence} See: ${path} --help`)
    }
    throw error
  })
  for (const child of command.commands) explainUsage(child, `${path} ${child.name()}`, terminal)
}

const environmentHelp = `
Environment variables without a flag:
  PLANT_STORE_TOKEN  an additional token of your choice: 20 or more visible ASCII characters;
                     PLANT_STORE_TOKEN_FILE names a file that holds it
  PGPASSWORD         the password for a postgres:// address without one; PGPASSFILE names a file
  PUBLIC_URL         the address that clients use, where it differs from the one they send
  CORS_ORIGIN        origins that may call from a browser: * (all) or a list
  TRUST_PROXY        number of proxies in front whose X-Forwarded-For the log believes (0)
  RATE_LIMIT         requests that a token may make, such as 600/m (no limit)
  LOG_LEVEL          fatal, error, warn, info, debug, trace or silent (info)`
