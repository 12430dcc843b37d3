import { formatNames } from '../contract/formats.ts'
import { conflictRules } from '../contract/parameters.ts'
import { plantScopes, scopes } from '../contract/scopes.ts'
import { webhookTypes } from '../contract/webhooks.ts'
import {
  duration,
  expiry,
  flag,
  names,
  numberFrom,
  oneOf,
  plantId,
  processId,
  required,
  text,
  toggle,
  tokenName,
} from './flags.ts'
import { goneUrlOfImport } from './gone.ts'

/** Flags that many commands have. */
export const json = toggle('--json', 'print JSON')
const create = toggle('--create', 'make the store where there is none')
export const quiet = toggle('--quiet', 'show no progress')
const format = flag(
  '--format <name>',
  'ndjson or csv, if the name of the file does not say',
  oneOf(formatNames),
)

export const serveFlags = {
  port: text('--port <number>', 'port to listen on, 0 for a free one (PORT, 3000)'),
  host: text('--host <name>', 'address to listen on (HOST, 127.0.0.1)'),
  workers: text(
    '--workers <number>',
    'processes that share the port; PostgreSQL only (WORKERS, 1)',
  ),
  mustExist: toggle('--must-exist', 'fail if there is no store, instead of making one'),
  demo: toggle('--demo', 'serve a dozen plants from memory, to try or to test against'),
  untilStdinEnds: toggle(
    '--until-stdin-ends',
    'stop when standard input ends, as it does when the parent process dies',
  ),
}

export const readyFlags = {
  url: text('--url <address>', 'its address (from HOST and PORT)'),
  wait: flag('--wait <time>', 'how long to wait for that, such as 30s (0s)', duration('30s')),
  pid: flag('--pid <id>', 'its process: stop waiting once it has ended', processId),
}

export const tokenFlags = {
  name: required(flag('--name <name>', 'whose token it is', tokenName)),
  scope: flag('--scope <scopes>', `what it may do (${plantScopes.join(',')})`, names(scopes)),
  expires: flag(
    '--expires <time>',
    'how long it is valid, such as 12h, 90d, 1y or 2030-01-31 (no end)',
    expiry,
  ),
  create,
  json,
}

export const receiverFlags = {
  types: flag(
    '--types <types>',
    'plant.created, plant.replaced, plant.deleted (plant.created)',
    names(webhookTypes),
  ),
  from: text('--from <position>', 'a position in the journal, or latest (latest)'),
  create,
  json,
}

export const importFlags = {
  format,
  delimiter: text(
    '--delimiter <name>',
    'comma, semicolon, tab or a character (as the header shows)',
  ),
  onConflict: flag(
    '--on-conflict <rule>',
    'for an id whose plant has different content: fail, skip or replace (fail)',
    oneOf(conflictRules),
  ),
  rejects: text('--rejects <file>', 'where rejected lines go: as CSV from CSV (standard error)'),
  dryRun: toggle('--dry-run', 'report what the import would do, and store nothing'),
  url: goneUrlOfImport,
  create,
  quiet,
}

export const exportFlags = {
  format,
  delimiter: text('--delimiter <name>', 'comma, semicolon or tab, for CSV (comma; tab in .tsv)'),
  spreadsheet: toggle(
    '--spreadsheet',
    'CSV to open in a spreadsheet, which runs no formula; not for import',
  ),
  tag: text('--tag <tag>', 'only plants with this tag'),
  quiet,
}

export const backupFlags = {
  keep: flag(
    '--keep <number>',
    'make it in the folder <file>, and keep only this many there',
    numberFrom(1, 10_000, ' of backups'),
  ),
  quiet,
}

export const logFlags = {
  plant: flag('--plant <id>', 'only changes of this plant', plantId),
  token: text('--token <id>', 'only changes by this token, as "token list" shows it'),
  since: flag('--since <time>', 'only changes of the last 30m, 2h, 7d and so on', duration('2h')),
  limit: flag('--limit <number>', 'only the last changes, this many (all)', numberFrom(1, 100_000)),
  follow: toggle('--follow', 'keep printing changes as they are made, until Ctrl-C'),
  json,
}

export const copyFlags = {
  from: required(text('--from <url>', 'sqlite:PATH or postgres://…')),
  to: required(text('--to <url>', 'sqlite:PATH or postgres://…')),
  quiet,
}
