import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { newToken } from '../../src/tokens/issue.ts'
import { newStore } from './ends.ts'
import { describeRefused, type Row } from './refused.ts'

const see = (command: string) => ` See: plant-store ${command}--help`
const unknownReceiver =
  /^No receiver in sqlite:\S+ has the id whk_0\. See: plant-store webhook list/
const hook = 'https://example.com'

const words: Row[] = [
  ['water', 64, `Unknown command 'water'.${see('')}`],
  ['constructor', 64, `Unknown command 'constructor'.${see('')}`],
  ['webhook burn', 64, `Unknown command 'burn'.${see('webhook ')}`],
  ['help tokens', 64, `Unknown command 'tokens'.${see('')}`],
  ['help token made', 64, `Unknown command 'made'.${see('token ')}`],
  ['help serve now', 64, `Unknown command 'now'.${see('serve ')}`],
  ['postgres://me:s3cret@db.example/plants', 64, `Unknown command.${see('')}`],
  ['help postgres://me:s3cret@db.example/plants', 64, `Unknown command.${see('')}`],
  ['token plst_s3cret', 64, `Unknown command.${see('token ')}`],
  ['token --url=s3cret', 64, `Unknown option.${see('token ')}`],
  ['--quiet check', 64, `Unknown option '--quiet'.${see('')}`],
  ['serve --prot 1', 64, `Unknown option '--prot'.${see('serve ')}`],
  ['import x.csv --tokne=plst_s3cret', 64, `Unknown option '--tokne'.${see('import ')}`],
  ['import', 64, `Missing required argument 'file'.${see('import ')}`],
  ['webhook add', 64, `Missing required argument 'url'.${see('webhook add ')}`],
  ['webhook test', 64, `Missing required argument 'id'.${see('webhook test ')}`],
  ['check a', 64, `Too many arguments: expected 0 but got 1.${see('check ')}`],
  ['token create', 64, `Required option '--name <name>' not specified.${see('token create ')}`],
  ['copy --from', 64, `Option '--from' needs a value.${see('copy ')}`],
  ['export --tag --quiet', 64, `Option '--tag' needs a value.${see('export ')}`],
  ['check --constructor', 64, `Unknown option '--constructor'.${see('check ')}`],
  ['check --json=1', 64, `Option '--json' takes no value.${see('check ')}`],
]

/** Command lines of 1.x, which are told what to use instead. */
const gone: Row[] = [
  [
    'conformance http://127.0.0.1:3000 --only spec',
    64,
    /^conformance is gone .*openapi\.json.*Sch/,
  ],
  ['conformance --help', 64, /^conformance is gone since 2\.0\.0\. .*openapi\.json/],
  ['follow --from x --to y', 64, /^follow is gone .*Litestream.*PostgreSQL.*mirror\(\)/],
  ['import p.csv --url x --token s3cret', 64, /^import --url is gone .*curl.*the page.*client/],
  ['licenses', 64, /^licenses is gone .*THIRD-PARTY-LICENSES\.txt/],
  ['list --url x --token s3cret', 64, /^list is gone .*the page.*client.*curl.*export/],
]

const values: Row[] = [
  [['token', 'create', '--name', ''], 78, /^--name must have/],
  [['token', 'create', '--name', 'x'.repeat(201)], 78, /^--name must have/],
  [['token', 'create', '--name', 'a\nb'], 78, /^--name must have/],
  ['token create --name A --scope plants:burn', 78, /^--scope must be one or more of plants:read/],
  ['token create --name A --expires 2020-01-01', 78, /^--expires must be .*future date/],
  ['token create --name A --database sqlite::memory:', 78, /^A store in memory belongs/],
  ['token list --database nothing', 78, /^--database must be sqlite:PATH/],
  [
    'token revoke tok_0',
    78,
    /^No token in sqlite:\S+ has the id tok_0\. See: plant-store token list/,
  ],
  ['webhook add no-url', 78, 'The URL of the receiver must be a whole URL.'],
  ['webhook add https://u:s3cret@example.com', 78, /must not have a user or a password in it\.$/],
  [
    `webhook add ${hook} --types plant.created,plant.eaten`,
    78,
    /^--types must be one or more of p/,
  ],
  [['webhook', 'add', hook, '--types', ''], 78, /^--types must be/],
  [`webhook add ${hook} --from p1`, 78, /^--from must be latest, or a position/],
  [`webhook add ${hook} --from oldest`, 78, /^--from must be latest/],
  ...['test', 'rotate', 'pause', 'resume', 'failures', 'resend', 'remove'].map(
    (name): Row => [`webhook ${name} whk_0`, 78, unknownReceiver],
  ),
  ['log --plant 1.5', 78, '--plant must be the id of a plant, not "1.5".'],
  ['log --since today', 78, '--since must be a number of s, m, h or d, such as 2h, not "today".'],
  ['log --limit 0', 78, '--limit must be a number from 1 to 100000, not "0".'],
  ['log --limit 100001', 78, '--limit must be a number from 1 to 100000, not "100001".'],
  ['export p.ndjson --spreadsheet', 78, '--spreadsheet is for CSV only.'],
  ['export --delimiter tab', 78, '--delimiter is for CSV only.'],
  ['export p.csv --delimiter |', 78, '--delimiter must be comma, semicolon or tab, not "|".'],
  ['export p.txt', 78, 'The name p.txt does not show the format: add --format ndjson or csv.'],
  ['export no/where.csv', 73, /^Cannot write no\/where\.csv: there is no such file or folder/],
  ['export taken.csv', 73, /^Cannot write taken\.csv: /],
  ['ready --wait long', 78, /^--wait must be/],
  ...['0', '-1', 'x', ''].map(
    (pid): Row => [
      [`ready`, `--pid=${pid}`],
      78,
      `--pid must be a number of a process from 1 to 999999999, not "${pid}".`,
    ],
  ),
  ...['foo', 'ftp://a.example', 'https://a.example?x=y', 'https://u:s3cret@a.example', ''].flatMap(
    (url): Row[] => [
      [['openapi', '--url', url], 78, /^--url must be an http or https address without a query/],
      [['ready', '--url', url, '--wait', '9s'], 78, /^--url must be an http or https address/],
    ],
  ),
  ['serve --demo --database sqlite:own.db', 78, /^--demo keeps its plants in memory: leave --dat/],
  ['serve --demo --must-exist', 78, '--demo makes a store: leave --must-exist out.'],
  ['serve --port 65536', 78, '--port must be a number from 0 to 65535, not "65536".'],
  ['serve --host 203.0.113.1', 78, /^HOST 203\.0\.113\.1 is not an address of this machine/],
  [
    'serve --host fe80::1%nope',
    78,
    /^PORT \d+ on HOST fe80::1%nope cannot be used \(E[A-Z_]+\)\.$/,
  ],
]

const otherToken = /^No token in sqlite:\S+ has this value\. See: plant-store token list$/
const typingError = /^This is not a whole token: its checksum is wrong\. Nothing was revoked\.$/
/** Tokens that cannot be revoked, by argument or on standard input. None is repeated. */
const tokens = (
  [
    [newToken(), otherToken],
    ['correct-horse-battery', otherToken],
    ['eyJhbGciOiJFZERTQSJ9.e30.c2ln', otherToken],
    [`${newToken().slice(0, -1)}.`, typingError],
    [newToken().slice(0, -1), typingError],
    ['x'.repeat(2_000), /^(No token in \S+ has this value|Standard input is not a token)\./],
  ] as const
).flatMap(([token, message]): Row[] => [
  [['token', 'revoke', token], 78, message],
  ['token revoke -', 78, message, token],
])

const store = 'sqlite:data/plant-store.db'
const serve = 'serve --port 0 --database sqlite:'
const stores: Row[] = [
  [`copy --from ${store} --to ${store}`, 78, '--from and --to name the same store.'],
  [`copy --from ${store} --to sqlite:./data/plant-store.db`, 78, /^--from and --to name the same/],
  ['copy --from sqlite:no.db --to sqlite:b.db', 78, /^--from: there is no store at \S+\/no\.db\.$/],
  [`copy --from sqlite::memory: --to ${store}`, 78, /^A store in memory belongs/],
  [`${serve}.`, 78, /^Cannot open the database/],
  [`${serve}/proc/none/plants.db`, 78, /^Cannot open the database \/proc\/none/],
  [`${serve}/proc/plants.db`, 78, /^Cannot open the database \/proc\/plants\.db: /],
  [`${serve}/proc/kmsg`, 78, /^(Cannot open the database )?\/proc\/kmsg/],
  [`${serve}/dev/zero`, 78, /^Cannot open the database \/dev\/zero: it is not a /],
  ['serve --workers 2', 78, /^--workers above 1 needs PostgreSQL, because SQLite lets only one /],
]

const csv = 'import - --format csv'
const files: Row[] = [
  ['import missing.csv', 66, 'Cannot read missing.csv: there is no such file or folder.'],
  ['import . --format csv', 66, 'Cannot read .: it is a folder.'],
  [['import', 'a\u001b[2J\nb.csv'], 66, /^Cannot read a\\u001b\[2J\\u000ab\.csv: there is no such/],
  ['import plants.txt', 78, /--format ndjson or csv/],
  ['import - --format xml', 78, /^--format must be ndjson or csv/],
  ['import - --format tsv', 78, /^--format must be ndjson or/],
  [`${csv} --on-conflict merge`, 78, '--on-conflict must be fail, skip or replace, not "merge".'],
  ['import p.ndjson --delimiter ;', 78, '--delimiter is for CSV only.'],
  ...['ab', '"', '\n', ''].map(
    (one): Row => [
      [...csv.split(' '), '--delimiter', one],
      78,
      /^--delimiter must be one character/,
    ],
  ),
  [`${csv} --database sqlite::memory:`, 78, /^A store in memory/],
  [`${csv} --rejects no/where`, 73, /^Cannot write --rejects no\/where/, 'id,name\n'],
  [csv, 65, /^line 1: The first line must name the columns "id" .* It is: "id"\.$/, 'id\n1\n'],
  [csv, 65, /^line 1: .* It is: "Nr;Pfl"\.$/, 'Nr;Pfl\n'],
  [csv, 65, /^line 1: .* It is: "id,\\u009b31m\\u007f"\.$/, 'id,\u009b31m\u007f\n'],
  [csv, 65, /^line 1: .* names the column "id" twice\.$/, 'id,name,ID\n'],
  [csv, 65, /^line 1: .* a workbook, not CSV\. Open it and save it as/, 'PK\u0003\u0004\u0014\n'],
  [csv, 65, /^line 1: .*CR alone\. Save the file with LF or CR LF/, 'id,name,tag\r1,a,b\r'],
  [csv, 65, /^line 1: .*CR alone/, `id,name\r${'1,a\r'.repeat(300_000)}`],
  [`${csv} --delimiter ,`, 65, /^line 1: .* It is: "id;name;tag"\.$/, 'id;name;tag\n'],
  [`${csv} --delimiter tab`, 65, /^line 2: .* It is: "id,name"\.$/, 'sep=,\r\nid,name\n'],
]

describeRefused(
  'a mistake is answered in one line',
  [...words, ...gone, ...values, ...tokens, ...stores, ...files],
  async () => {
    const folder = await newStore()
    mkdirSync(join(folder, 'taken.csv'))
    return folder
  },
)
