import { CommandFailed, exitCodes } from './exit.ts'
import type { Flag } from './flags.ts'

/** Commands that only releases before 2.0.0 have, with what to use instead. 3.0 forgets them. */
export const goneCommands: ReadonlyMap<string, string> = new Map([
  ['conformance', 'Test a server by openapi.json instead, with a tool such as Schemathesis.'],
  [
    'follow',
    'Keep a standby with Litestream or PostgreSQL; copy the plants with mirror() of the client.',
  ],
  [
    'licenses',
    'Read THIRD-PARTY-LICENSES.txt in the package, in the image or beside the executable.',
  ],
  ['list', 'Search in the page, with the client, or with curl at /plants; export prints a store.'],
])

/** The flag by which `import` sent a file to a service. */
export const goneUrlOfImport: Flag<undefined> = {
  form: '--url <address>',
  about: '',
  gone: 'Send the file with curl to /plants.ndjson or /plants.csv, in the page or with the client.',
}

/** The answer of a command that is gone: what to use instead. */
export function gone(name: string, instead: string): CommandFailed {
  return new CommandFailed(exitCodes.usage, `${name} is gone since 2.0.0. ${instead}`)
}
