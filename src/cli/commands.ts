import type { Environment, StoreConfig } from '../config.ts'
import { formatNames } from '../contract/formats.ts'
import { conflictRules } from '../contract/parameters.ts'
import { plantScopes, scopes } from '../contract/scopes.ts'
import { webhookTypes } from '../contract/webhooks.ts'
import type { Store } from '../store/store.ts'
import {
  delimiter,
  duration,
  expiry,
  type Flags,
  flag,
  numberFrom,
  oneOf,
  plantId,
  required,
  separator,
  someOf,
  text,
  toggle,
  tokenName,
  type ValuesOf,
} from './flags.ts'
import type { StopSignal } from './signals.ts'
import type { Terminal } from './terminal.ts'

/** A command of the table, as the help explains it. Its function is in `program.ts`. */
export interface Command {
  /** What it is for. */
  readonly about: string
  /** Its arguments, as the help shows them. */
  readonly args?: Readonly<Record<string, string>>
  readonly flags: Flags
  /**
   * What it needs. `location`: where the store is. `store`: an open store, which must exist. A
   * command with a flag `--create` makes a missing one if that is given or a setting names the
   * store. It reads no other setting: a mistake in one that it does not need does not matter.
   */
  readonly needs: 'nothing' | 'location' | 'store'
  /** Flags of V8 that keep its heap small, where millions of rows or requests pass through it. */
  readonly v8?: readonly string[]
  /** Text below its help. */
  readonly help?: string
}

/** What only releases before 2.0.0 have, with what to use instead. 3.0 will drop this list. */
export const gone: Readonly<Record<string, string>> = {
  conformance: 'Test a server by openapi.json instead, with a tool such as Schemathesis.',
  follow:
    'Keep a standby with Litestream or PostgreSQL; copy the plants with mirror() of the client.',
  'import --url':
    'Send the file with curl to /plants.ndjson or /plants.csv, in the page or with the client.',
  licenses: 'Read THIRD-PARTY-LICENSES.txt in the package, in the image or beside the executable.',
  list: 'Search in the page, with the client, or with curl at /plants; export prints a store.',
}

/** How to keep a password out of the list of processes. */
const passwordHelp = `
Other users can see the arguments of a command. Leave the password out of
postgres://USER@HOST/… and set PGPASSWORD, or PGPASSFILE with lines of
host:port:database:user:password.`

/** Settings of `serve` that have no flag. */
const environmentHelp = `
Environment variables without a flag:
  PLANT_STORE_TOKEN  an additional token of your choice: 20 or more visible
                     ASCII characters; PLANT_STORE_TOKEN_FILE names its file
  AUTH_ISSUER        an OpenID provider whose JSON Web Tokens are accepted, for
                     AUTH_AUDIENCE
  PGPASSWORD         the password for a postgres:// address without one;
                     PGPASSFILE names a file
  PUBLIC_URL         the address that clients use; without it, Location and Link
                     are relative
  CORS_ORIGIN        origins that may call from a browser: * (all) or a list
  TRUST_PROXY        number of trusted proxies in front, for client addresses in
                     the log (0)
  RATE_LIMIT         requests that a token may make, such as 600/m (no limit)
  JOURNAL_KEEP       how long changes can be read at /events, such as 12h, or
                     off (7d)
  JOURNAL_MAX        how large the journal of changes may become, such as 512MiB
                     (1GiB)
  LOG_LEVEL          fatal, error, warn, info, debug, trace or silent (info)`

/** What the commands with a common first word are for, and all of them. */
export const groups: ReadonlyMap<string, string> = new Map([
  ['', 'A plant store over HTTP with JSON.'],
  ['token', 'create, list, revoke and prune tokens'],
  ['webhook', 'send changes to other services'],
])

const defaultStore = '(DATABASE_URL, sqlite:data/plant-store.db)'
const database = text('<url>', `sqlite:PATH or postgres://… ${defaultStore}`)
const json = toggle('print JSON')
const create = toggle('make the store where there is none')
const quiet = toggle('show no progress')
const ofFile = oneOf('<name>', formatNames)
const format = flag('ndjson or csv, if the name of the file does not say', ofFile)

/**
 * Without this flag, V8 sees that some rows survive a few collections, allocates all of them in the
 * old space, and holds a hundred megabytes of garbage there.
 */
const shortLived = '--no-allocation-site-pretenuring'

/** A command on a store that exists, whose only flag is `--json`. */
function onStore(about: string, args: Command['args'] = {}) {
  return { about, args, flags: { json }, needs: 'store' } as const
}

const receiver = { '<id>': 'the id that "webhook list" shows' }

const table = {
  serve: {
    about: 'run the service',
    flags: {
      // Only the service can use a store in memory.
      database: text('<url>', `sqlite:PATH, sqlite::memory: or postgres://… ${defaultStore}`),
      port: text('<number>', 'port to listen on, 0 for a free one (PORT, 3000)'),
      host: text('<name>', 'address to listen on (HOST, 127.0.0.1)'),
      workers: text('<number>', 'processes that share the port; PostgreSQL only (WORKERS, 1)'),
      'must-exist': toggle('fail if there is no store, instead of making one'),
      demo: toggle('serve a dozen plants from memory, to try or to test against'),
      'until-stdin-ends': toggle(
        'stop when standard input ends, as it does when the parent process dies',
      ),
    },
    needs: 'nothing',
    // The old space is collected when it has doubled, not only when it is four times as large.
    v8: [shortLived, '--heap-growing-percent=100'],
    help: environmentHelp,
  },
  ready: {
    about: 'ask a running service whether it is ready; exits with 0 or 1',
    flags: {
      url: text('<address>', 'its address (from HOST and PORT)'),
      wait: flag('how long to wait for that, such as 30s (0s)', duration('30s')),
      pid: flag('its process: stop waiting once it has ended', {
        ...numberFrom(1, 999_999_999, ' of a process'),
        form: '<id>',
      }),
    },
    needs: 'nothing',
  },
  openapi: {
    about: 'print the OpenAPI document',
    flags: { url: text('<address>', 'address of the service, for the document (/)') },
    needs: 'nothing',
  },
  'token create': {
    about: 'make a token and print it, once',
    flags: {
      name: required(flag('whose token it is', tokenName)),
      scope: flag(`what it may do (${plantScopes.join(',')})`, someOf('<scopes>', scopes)),
      expires: flag('how long it is valid, such as 12h, 90d, 1y or 2030-01-31 (no end)', expiry),
      create,
      json,
    },
    needs: 'store',
  },
  'token list': onStore('list every token, without its secret'),
  'token revoke': onStore('stop a token from working', {
    '<id>': 'the id that "token list" shows, or the token itself; - for standard input',
  }),
  'token prune': onStore('forget the tokens that are expired or revoked'),
  'webhook add': {
    about: 'add a receiver and print its signing secret, once',
    args: { '<url>': 'where to send changes: http or https, without a password' },
    flags: {
      types: flag(
        'plant.created, plant.replaced, plant.deleted (plant.created)',
        someOf('<types>', webhookTypes),
      ),
      from: text('<position>', 'a position in the journal, or latest (latest)'),
      create,
      json,
    },
    needs: 'store',
  },
  'webhook list': onStore('list every receiver, its progress and its last failure'),
  'webhook failures': onStore('list the changes that a receiver did not take', receiver),
  'webhook resend': onStore('send every failure again, or one change of the journal', {
    ...receiver,
    '[position]': 'the position of a change that is still kept (all failures)',
  }),
  'webhook test': onStore('send a signed sample, and print what came back', receiver),
  'webhook rotate': onStore(
    'make a new secret and print it, once; the old one signs as well for 24 h',
    receiver,
  ),
  'webhook pause': onStore('send nothing more until the receiver is resumed', receiver),
  'webhook resume': onStore('continue where a paused receiver stopped', receiver),
  'webhook remove': onStore('remove a receiver and its pending deliveries', receiver),
  import: {
    about: 'import the plants of a file into the store',
    args: { '<file>': 'NDJSON, CSV or TSV, gzipped or not; - for standard input' },
    flags: {
      format,
      delimiter: flag('comma, semicolon, tab or a character (as the header shows)', separator),
      'on-conflict': flag(
        'for an id whose plant has different content: fail, skip or replace (fail)',
        oneOf('<rule>', conflictRules),
      ),
      rejects: text('<file>', 'where rejected lines go: as CSV from CSV (standard error)'),
      'dry-run': toggle('report what the import would do, and store nothing'),
      create,
      quiet,
    },
    needs: 'location',
    // With earlier collections, the heap does not grow with the number of rows ever seen.
    v8: [shortLived, '--semi-space-growth-factor=1', '--heap-growing-percent=20'],
  },
  export: {
    about: 'write every plant to a file or to standard output',
    args: { '[file]': 'the file; a name that ends in .gz is gzipped (-)' },
    flags: {
      format,
      delimiter: flag('comma, semicolon or tab, for CSV (comma; tab in .tsv)', delimiter),
      spreadsheet: toggle('CSV to open in a spreadsheet, which runs no formula; not for import'),
      tag: text('<tag>', 'only plants with this tag'),
      quiet,
    },
    needs: 'store',
  },
  backup: {
    about: 'copy the store into one file, while the service runs',
    args: { '<file>': 'a new file; with .gz at its end it is gzipped; - for standard output' },
    flags: {
      keep: flag(
        'make it in the folder <file>, and keep only this many there',
        numberFrom(1, 10_000, ' of backups'),
      ),
      quiet,
    },
    needs: 'location',
  },
  restore: {
    about: 'make a store from a backup, where there is none',
    args: { '<file>': 'a file that "backup" made, gzipped or not; - for standard input' },
    flags: { quiet },
    needs: 'location',
  },
  check: {
    about: 'check the store and say what to do; exits with 1 if it finds a problem',
    flags: { json },
    needs: 'location',
  },
  log: {
    about: 'show which token changed which plant, from the journal',
    flags: {
      plant: flag('only changes of this plant', plantId),
      token: text('<id>', 'only changes by this token, as "token list" shows it'),
      since: flag('only changes of the last 30m, 2h, 7d and so on', duration('2h')),
      limit: flag('only the last changes, this many (all)', numberFrom(1, 100_000)),
      follow: toggle('keep printing changes as they are made, until Ctrl-C'),
      json,
    },
    needs: 'store',
  },
  copy: {
    about: 'copy a store, tokens included, into another one, and compare them',
    flags: {
      from: required(text('<url>', 'sqlite:PATH or postgres://…')),
      to: required(text('<url>', 'sqlite:PATH or postgres://…')),
      quiet,
    },
    needs: 'nothing',
    help: passwordHelp,
  },
} as const satisfies Record<string, Command>

type CommandName = keyof typeof table

/** What a command gets besides its arguments and flags, by what it needs. */
interface Given {
  nothing: unknown
  location: { readonly config: StoreConfig }
  store: { readonly config: StoreConfig; readonly store: Store }
}

/** A command that is being run. */
export type Call<Name extends CommandName> = Given[(typeof table)[Name]['needs']] & {
  readonly args: readonly string[]
  readonly flags: ValuesOf<(typeof table)[Name]['flags']>
  readonly env: Environment
  readonly terminal: Terminal
}

/** The function of a command. */
export type Run<Name extends CommandName> = (call: Call<Name>) => Promise<Printed>

/** What a command prints. How that is done is the same for all of them. */
export interface Printed {
  /** The result for people, on standard output; empty if there is none. */
  readonly text?: string
  /** The result with `--json`. Its times are numbers, and what is not known is undefined. */
  readonly json?: unknown
  /** A sentence for people, on standard error, where there is no result; not with `--quiet`. */
  readonly note?: string
  /** Sentences on standard error, after the result. */
  readonly remarks?: readonly string[]
  /** Undoes what was made: the result has a secret that is shown once, and could not be printed. */
  readonly undo?: () => Promise<unknown>
  /** How the command ends, after all of that, unless it was successful. */
  readonly failure?: unknown
  readonly stoppedBy?: StopSignal | undefined
}

/** What loads the functions of the commands. */
export type Functions = { readonly [Name in CommandName]: () => Promise<Run<Name>> }

/** Every command, by its name. Those that need a store have a flag that names it. */
export const commands: ReadonlyMap<string, Command> = new Map(
  Object.entries<Command>(table).map(([name, one]) => {
    return [name, one.needs === 'nothing' ? one : { ...one, flags: { database, ...one.flags } }]
  }),
)
