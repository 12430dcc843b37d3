import type { Command } from 'commander'
import { type Environment, type Flags, readConfig } from '../../config.ts'
import { createFlag, databaseFlag, jsonFlag } from '../flags.ts'
import type { Terminal } from '../terminal.ts'
import type { CreateFlags } from './create.ts'

export function addTokenCommands(program: Command, env: Environment, terminal: Terminal): void {
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
    .action(async (flags: CreateFlags & Flags) => {
      const { createToken } = await import('./create.ts')
      await createToken(flags, readConfig(flags, env), terminal)
    })

  token
    .command('list')
    .description('list every token, without its secret')
    .option(...jsonFlag)
    .option(...databaseFlag)
    .action(async (flags: { json?: boolean } & Flags) => {
      const { listTokens } = await import('./list.ts')
      await listTokens(flags, readConfig(flags, env), terminal)
    })

  token
    .command('revoke')
    .description('stop a token from working')
    .argument('<id>', 'the id that "token list" shows, or the token itself; - for standard input')
    .option(...jsonFlag)
    .option(...databaseFlag)
    .action(async (id: string, flags: { json?: boolean } & Flags) => {
      const { revokeToken } = await import('./revoke.ts')
      await revokeToken(id, flags, readConfig(flags, env), terminal)
    })

  token
    .command('prune')
    .description('forget the tokens that are expired or revoked')
    .option(...jsonFlag)
    .option(...databaseFlag)
    .action(async (flags: { json?: boolean } & Flags) => {
      const { pruneTokens } = await import('./prune.ts')
      await pruneTokens(flags, readConfig(flags, env), terminal)
    })
}
