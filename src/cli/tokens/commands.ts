import type { Command } from 'commander'
import type { Environment } from '../../config.ts'
import { buildActions } from '../action.ts'
import { createFlag, databaseFlag, jsonFlag } from '../flags.ts'
import type { Terminal } from '../terminal.ts'

export function addTokenCommands(program: Command, env: Environment, terminal: Terminal): void {
  const act = buildActions(env, terminal)
  const token = program.command('token').description('create, list, revoke and prune tokens')

  token
    .command('create')
    .description('make a token and print it, once')
    .requiredOption('--name <name>', 'whose token it is')
    .option('--scope <scopes>', 'what it may do (plants:read,plants:write)')
    .option('--expires <time>', 'how long it is valid, such as 12h, 90d, 1y or 2030-01-31 (no end)')
    .option(...createFlag)
    .option(...jsonFlag)
    .option(...databaseFlag)
    .action(act(async () => (await import('./create.ts')).createToken))

  token
    .command('list')
    .description('list every token, without its secret')
    .option(...jsonFlag)
    .option(...databaseFlag)
    .action(act(async () => (await import('./list.ts')).listTokens))

  token
    .command('revoke')
    .description('stop a token from working')
    .argument('<id>', 'the id that "token list" shows, or the token itself; - for standard input')
    .option(...jsonFlag)
    .option(...databaseFlag)
    .action(act(async () => (await import('./revoke.ts')).revokeToken))

  token
    .command('prune')
    .description('forget the tokens that are expired or revoked')
    .option(...jsonFlag)
    .option(...databaseFlag)
    .action(act(async () => (await import('./prune.ts')).pruneTokens))
}
