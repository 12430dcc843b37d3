import { type Command, Option } from 'commander'
import { CommandFailed, exitCodes } from './exit.ts'

/** Commands that only releases before 2.0.0 have, with what to use instead. 3.0 forgets them. */
const goneCommands: Readonly<Record<string, string>> = {
  conformance: 'Test a server by openapi.json instead, with a tool such as Schemathesis.',
  follow:
    'Keep a standby with Litestream or PostgreSQL; copy the plants with mirror() of the client.',
  licenses: 'Read THIRD-PARTY-LICENSES.txt in the package, in the image or beside the executable.',
  list: 'Search in the page, with the client, or with curl at /plants; export prints a store.',
}

/** Lets a command that is gone answer, whatever its arguments are, with what to use instead. */
export function addGoneCommands(program: Command): void {
  for (const [name, instead] of Object.entries(goneCommands)) {
    program
      .command(name, { hidden: true })
      .description(describe(name, instead))
      .argument('[any...]')
      .allowUnknownOption()
      .helpOption(false)
      .action(() => refuse(name, instead))
  }
}

/** The flag by which `import` sent a file to a service. */
export const goneUrlOfImport = new Option('--url <address>')
  .hideHelp()
  .argParser(() =>
    refuse(
      'import --url',
      'Send the file with curl to /plants.ndjson or /plants.csv, in the page or with the client.',
    ),
  )

function refuse(name: string, instead: string): never {
  throw new CommandFailed(exitCodes.usage, describe(name, instead))
}

function describe(name: string, instead: string): string {
  return `${name} is gone since 2.0.0. ${instead}`
}
