import { type Command, Option } from 'commander'
import type { Environment } from '../../config.ts'
import { buildActions } from '../action.ts'
import { createFlag, databaseFlag, quietFlag } from '../flags.ts'
import type { Terminal } from '../terminal.ts'

export function addImportCommand(program: Command, env: Environment, terminal: Terminal): void {
  const act = buildActions(env, terminal)
  program
    .command('import')
    .description('import the plants of a file into the store or a running service')
    .argument('<file>', 'NDJSON, CSV or TSV, gzipped or not; - for standard input')
    .option('--format <name>', 'ndjson or csv, where the name of the file does not tell')
    .option('--delimiter <character>', 'between the fields of CSV, or tab (a comma; a tab in .tsv)')
    .addOption(
      new Option('--on-conflict <rule>', 'for an id whose plant has different content')
        .choices(['fail', 'skip', 'replace'])
        .default('fail'),
    )
    .option('--rejects <file>', 'where rejected lines go: as CSV from CSV (standard error)')
    .option('--url <address>', 'the service to import into, instead of a store')
    .option('--token <token>', 'the token for that service (PLANT_STORE_TOKEN)')
    .option('--dry-run', 'read and check the file, and store nothing')
    .option(...createFlag)
    .option(...quietFlag)
    .option(...databaseFlag)
    .action(act(async () => (await import('./import.ts')).importPlants))
}
