import type { Command } from 'commander'
import { CommandFailed, exitCodes } from './exit.ts'

/** Commands that only releases before 2.0.0 have, with what to use instead. 3.0 forgets them. */
const goneCommands: Readonly<Record<string, string>> = {
  conformance: 'Test a server by openapi.json instead, with a tool such as Schemathesis.',
  follow:
    'Keep a standby with Litestream or PostgreSQL; copy the plants with mirror() of the client.',
  list: 'Search in the page, with the client, or with curl at /plants; export prints a store.',
}

/** Lets a command that is gone answer, whatever its arguments are, with what to use instead. */
export function addGoneCommands(program: Command): void {
  for (const [name, instead] of Object.entries(goneCommands)) {
    const message = `${name} is gone since 2.0.0. ${instead}`
    program
      .command(name, { hidden: true })
      .description(message)
      .argument('[any...]')
      .allowUnknownOption()
      .helpOption(false)
      .action(() => {
        throw new CommandFailed(exitCodes.usage, message)
      })
  }
}
