import type { Command } from 'commander'
import { type Environment, type Flags, readConfig } from '../../config.ts'
import { databaseFlag, jsonFlag } from '../flags.ts'
import type { Terminal } from '../terminal.ts'
import type { LogFlags } from './log.ts'

export function addLogCommand(program: Command, env: Environment, terminal: Terminal): void {
  program
    .command('log')
    .description('show who changed which plant, from the journal')
    .option('--plant <id>', 'only changes of this plant')
    .option('--token <id>', 'only changes by this token, as "token list" shows it')
    .option('--since <time>', 'only changes of the last 30m, 2h, 7d and so on')
    .option('--follow', 'go on with changes as they are made, until Ctrl-C')
    .option(...jsonFlag)
    .option(...databaseFlag)
    .action(async (flags: LogFlags & Flags) => {
      const { showLog } = await import('./log.ts')
      await showLog(flags, readConfig(flags, env), terminal)
    })
}
