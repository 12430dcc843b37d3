import type { Command } from 'commander'
import type { Environment } from '../../config.ts'
import { buildActions } from '../action.ts'
import { databaseFlag, jsonFlag, passwordHelp, quietFlag } from '../flags.ts'
import type { Terminal } from '../terminal.ts'
import type { CopyFlags } from './copy.ts'

export function addStoreCommands(program: Command, env: Environment, terminal: Terminal): void {
  const act = buildActions(env, terminal)
  program
    .command('export')
    .description('write every plant to a file or to standard output')
    .argument('[file]', 'the file; a name that ends in .gz is gzipped', '-')
    .option('--format <name>', 'ndjson or csv, where the name of the file does not tell (ndjson)')
    .option('--tag <tag>', 'only plants with this tag')
    .option(...quietFlag)
    .option(...databaseFlag)
    .action(act(async () => (await import('./export.ts')).exportPlants))

  program
    .command('backup')
    .description('copy the store into one file, while the service runs')
    .argument('<file>', 'a new file; with .gz at its end it is gzipped; - for standard output')
    .option(...quietFlag)
    .option(...databaseFlag)
    .action(act(async () => (await import('./backup.ts')).backUp))

  program
    .command('restore')
    .description('make a store from a backup, where there is none')
    .argument('<file>', 'a file that "backup" made, gzipped or not; - for standard input')
    .option(...quietFlag)
    .option(...databaseFlag)
    .action(act(async () => (await import('./restore.ts')).restoreBackup))

  program
    .command('check')
    .description('examine the store and say what to do; ends with 1 if there is anything')
    .option(...jsonFlag)
    .option(...databaseFlag)
    .action(act(async () => (await import('./check.ts')).checkStore))

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
