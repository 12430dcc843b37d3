import { requireUrl } from '../config.ts'
import { type Call, type Command, command, type Printed } from './command.ts'
import {
  backupFlags,
  copyFlags,
  exportFlags,
  importFlags,
  json,
  logFlags,
  quiet,
  readyFlags,
  receiverFlags,
  serveFlags,
  tokenFlags,
} from './flag-tables.ts'
import { text } from './flags.ts'

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

const tokens = () => import('./tokens.ts')
const webhooks = () => import('./webhook-receivers.ts')

/** A command about one receiver. */
function forReceiver(
  about: string,
  load: () => Promise<(call: Call) => Promise<Printed>>,
  args = {},
): Command {
  const all = { '<id>': 'the id that "webhook list" shows', ...args }
  return command({ about, args: all, flags: { json }, needs: 'store', load })
}

const table: Readonly<Record<string, Command>> = {
  serve: command({
    about: 'run the service',
    flags: serveFlags,
    needs: 'service',
    help: environmentHelp,
    load: async () => (await import('./serve.ts')).serve,
  }),
  ready: command({
    about: 'ask a running service whether it is ready; exits with 0 or 1',
    flags: readyFlags,
    needs: 'nothing',
    load: async () => (await import('./ready.ts')).askReadiness,
  }),
  openapi: command({
    about: 'print the OpenAPI document',
    flags: { url: text('--url <address>', 'address of the service, for the document (/)') },
    needs: 'nothing',
    load: async () => {
      const { printOpenApi } = await import('../contract/openapi.ts')
      return async ({ flags: { url = '/' } }) => {
        const baseUrl = url.startsWith('/') ? url : requireUrl('--url', url)
        return { text: printOpenApi({ baseUrl }) }
      }
    },
  }),
  'token create': command({
    about: 'make a token and print it, once',
    flags: tokenFlags,
    needs: 'new store',
    load: async () => (await tokens()).createToken,
  }),
  'token list': command({
    about: 'list every token, without its secret',
    flags: { json },
    needs: 'store',
    load: async () => (await tokens()).listTokens,
  }),
  'token revoke': command({
    about: 'stop a token from working',
    args: {
      '<id>': 'the id that "token list" shows, or the token itself; - for standard input',
    },
    flags: { json },
    needs: 'store',
    load: async () => (await tokens()).revokeToken,
  }),
  'token prune': command({
    about: 'forget the tokens that are expired or revoked',
    flags: { json },
    needs: 'store',
    load: async () => (await tokens()).pruneTokens,
  }),
  'webhook add': command({
    about: 'add a receiver and print its signing secret, once',
    args: { '<url>': 'where to send changes: http or https, without a password' },
    flags: receiverFlags,
    needs: 'new store',
    load: async () => (await webhooks()).addReceiver,
  }),
  'webhook list': command({
    about: 'list every receiver, its progress and its last failure',
    flags: { json },
    needs: 'store',
    load: async () => (await webhooks()).listReceivers,
  }),
  'webhook failures': forReceiver(
    'list the changes that a receiver did not take',
    async () => (await webhooks()).listFailures,
  ),
  'webhook resend': forReceiver(
    'send every failure again, or one change of the journal',
    async () => (await webhooks()).resend,
    { '[position]': 'the position of a change that is still kept (all failures)' },
  ),
  'webhook test': forReceiver(
    'send a signed sample, and print what came back',
    async () => (await webhooks()).testReceiver,
  ),
  'webhook rotate': forReceiver(
    'make a new secret and print it, once; the old one signs as well for 24 h',
    async () => (await webhooks()).rotateSecret,
  ),
  'webhook pause': forReceiver(
    'send nothing more until the receiver is resumed',
    async () => (await webhooks()).pauseReceiver,
  ),
  'webhook resume': forReceiver(
    'continue where a paused receiver stopped',
    async () => (await webhooks()).resumeReceiver,
  ),
  'webhook remove': forReceiver(
    'remove a receiver and its pending deliveries',
    async () => (await webhooks()).removeReceiver,
  ),
  import: command({
    about: 'import the plants of a file into the store',
    args: { '<file>': 'NDJSON, CSV or TSV, gzipped or not; - for standard input' },
    flags: importFlags,
    needs: 'location',
    load: async () => (await import('./import-plants.ts')).importPlants,
  }),
  export: command({
    about: 'write every plant to a file or to standard output',
    args: { '[file]': 'the file; a name that ends in .gz is gzipped (-)' },
    flags: exportFlags,
    needs: 'store',
    load: async () => (await import('./export-plants.ts')).exportPlants,
  }),
  backup: command({
    about: 'copy the store into one file, while the service runs',
    args: { '<file>': 'a new file; with .gz at its end it is gzipped; - for standard output' },
    flags: backupFlags,
    needs: 'location',
    load: async () => (await import('./backups.ts')).backUp,
  }),
  restore: command({
    about: 'make a store from a backup, where there is none',
    args: { '<file>': 'a file that "backup" made, gzipped or not; - for standard input' },
    flags: { quiet },
    needs: 'location',
    load: async () => (await import('./backups.ts')).restoreBackup,
  }),
  check: command({
    about: 'check the store and say what to do; exits with 1 if it finds a problem',
    flags: { json },
    needs: 'location',
    load: async () => (await import('./stores.ts')).checkStore,
  }),
  log: command({
    about: 'show which token changed which plant, from the journal',
    flags: logFlags,
    needs: 'store',
    load: async () => (await import('./log.ts')).showLog,
  }),
  copy: command({
    about: 'copy a store, tokens included, into another one, and compare them',
    flags: copyFlags,
    needs: 'nothing',
    help: passwordHelp,
    load: async () => (await import('./copy-store.ts')).copyStore,
  }),
}

/** Every command, by its name. */
export const commands: ReadonlyMap<string, Command> = new Map(Object.entries(table))
