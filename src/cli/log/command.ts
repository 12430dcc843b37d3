import type { Command } from 'commander'
import type { Environment } from '../../config.ts'
import { buildActions } from '../action.ts'
import { databaseFlag, jsonFlag } from '../flags.ts'
import type { Terminal } from '../terminal.ts'

export function addLogCommand(program: Command, env: Environment, terminal: Terminal): void {
  const act = buildActions(env, terminal)
  program
    .command('log')
    .description('show who changed which plant, from the journal')
    .option('--plant <id>', 'only changes of this plant')
    .option('--token <id>', 'only changes by this token, as "token list" shows it')
    .option('--since <time>', 'only changes of the last 30m, 2h, 7d and so on')
    .option('--follow', 'go on with changes as they are made, until Ctrl-C')
    .option(...jsonFlag)
    .option(...databaseFlag)
    .action(act(async () => (await import('./log.ts')).showLog))
}
