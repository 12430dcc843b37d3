import assert from 'node:assert/strict'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { run } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'

/** A command line, how it ends, the one line that it prints, and what it reads. */
type Row = [line: string | string[], exitCode: number, message: RegExp | string, input?: string]

const see = (command: string) => ` See: plant-store ${command}--help`
const unknownReceiver =
  /^No receiver in sqlite:\S+ has the id whk_0\. See: plant-store webhook list/
const hook = 'https://example.com'

const words: Row[] = [
  ['water', 64, `Unknown command 'water'.${see('')}`],
  ['tokn', 64, `Unknown command 'tokn' (Did you mean token?).${see('')}`],
  ['constructor', 64, `Unknown command 'constructor'.${see('')}`],
  ['token creat', 64, `Unknown command 'creat' (Did you mean create?).${see('token ')}`],
  ['webhook burn', 64, `Unknown command 'burn'.${see('webhook ')}`],
  ['help tokens', 64, `Unknown command 'tokens'.${see('')}`],
  ['help token made', 64, `Unknown command 'token made'.${see('')}`],
  ['help serve now', 64, `Unknown command 'serve now'.${see('')}`],
  ['postgres://me:s3cret@db.example/plants', 64, `Unknown command.${see('')}`],
  ['help postgres://me:s3cret@db.example/plants', 64, `Unknown command.${see('')}`],
  ['token plst_s3cret', 64, `Unknown command.${see('token ')}`],
  ['token --url=s3cret', 64, `Unknown option.${see('token ')}`],
  ['--quiet check', 64, `Unknown option '--quiet'.${see('')}`],
  ['serve --prot 1', 64, `Unknown option '--prot' (Did you mean --port?).${see('serve ')}`],
  ['import x.csv --tokne=plst_s3cret', 64, `Unknown option '--tokne'.${see('import ')}`],
  ['import', 64, `Missing required argument 'file'.${see('import ')}`],
  ['webhook add', 64, `Missing required argument 'url'.${see('webhook add ')}`],
  ['webhook test', 64, `Missing required argument 'id'.${see('webhook test ')}`],
  ['check a', 64, `Too many arguments: expected 0 but got 1.${see('check ')}`],
  ['token create', 64, `Required option '--name <name>' not specified.${see('token create ')}`],
  ['copy --from', 64, `Option '--from <url>' needs a value.${see('copy ')}`],
  ['export --tag --quiet', 64, `Option '--tag <tag>' needs a value.${see('export ')}`],
  ['check --json=1', 64, `Option '--json' takes no value.${see('check ')}`],
]

const values: Row[] = [
  [['token', 'create', '--name', ''], 78, /^--name must have/],
  [['token', 'create', '--name', 'x'.repeat(201)], 78, /^--name must have/],
  [['token', 'create', '--name', 'a\nb'], 78, /^--name must have/],
  ['token create --name A --scope plants:burn', 78, /^--scope must be one or more of plants:read/],
  ['token create --name A --expires soon', 78, /^--expires must be/],
  ['token create --name A --expires 0d', 78, /^--expires must be/],
  ['token create --name A --expires 2020-01-01', 78, /^--expires must be .*future date/],
  ['token create --name A --database sqlite::memory:', 78, /^A store in memory belongs/],
  ['token list --database nothing', 78, /^--database must be sqlite:PATH/],
  [
    'token revoke tok_0',
    78,
    /^No token in sqlite:\S+ has the id tok_0\. See: plant-store token list/,
  ],
  ['webhook add no-url', 78, 'The URL of the receiver must be a whole URL.'],
  ['webhook add ftp://example.com', 78, 'The URL of the receiver must be http or https.'],
  ['webhook add https://u:s3cret@example.com', 78, /must not have a user or a password in it\.$/],
  [`webhook add ${hook}/${'x'.repeat(2_100)}`, 78, /^The URL .* at most 2048 bytes\.$/],
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
  ['export p.csv --delimiter |', 78, '--delimiter must be comma, semicolon or tab.'],
  ['export p.txt', 78, 'The name p.txt does not show the format: add --format ndjson or csv.'],
  ['export no/where.csv', 73, /^Cannot write no\/where\.csv: there is no such file or folder/],
  ['export taken.csv', 73, /^Cannot write taken\.csv: /],
  ['ready --wait long', 78, /^--wait must be/],
  ...['0', '-1', 'x', ''].map(
    (pid): Row => [
      [`ready`, `--pid=${pid}`],
      78,
      `--pid must be the id of a process, not "${pid}".`,
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
  ['import - --format ndjson', 65, /^line 1: This is not NDJSON.*--format csv\.$/, 'id,name\n'],
  ['import - --format ndjson', 65, /^line 1: This is not NDJSON.* jq -c '\.\[\]'$/, '[1]\n'],
  [csv, 65, /^line 1: The header has no column "name"\. It has: "id"\. Rename/, 'id\n1\n'],
  [csv, 65, /^line 1: .* no columns "id" and "name"\. It has: "Nr", "Pfl"\./, 'Nr;Pfl\n'],
  [csv, 65, /^line 1: .* It has: "id", "\\u009b31m\\u007f"\. Rename/, 'id,\u009b31m\u007f\n'],
  [csv, 65, /^line 1: .* names the column "id" twice\.$/, 'id,name,ID\n'],
  [csv, 65, /^line 1: .*bars, not by commas\. Use: --delimiter '\|'$/, '"id"|"name"\n'],
  [csv, 65, /^line 1: .* a workbook, not CSV\. Open it and save it as/, 'PK\u0003\u0004\u0014\n'],
  [csv, 65, /^line 1: .*CR alone\. Save the file with LF or CR LF/, 'id,name,tag\r1,a,b\r'],
  [csv, 65, /^line 1: .*CR alone/, `id,name\r${'1,a\r'.repeat(300_000)}`],
  [csv, 65, /^line 1: .*"1,A,b" is no header: put .*"id,name,tag"/, '1,A,b\n'],
  [
    `${csv} --delimiter ,`,
    65,
    /semicolons, not by commas\. Use: --delimiter ';'$/,
    'id;name;tag\n',
  ],
  [`${csv} --delimiter comma`, 65, /tabs, not by commas\. Use: --delimiter tab$/, '"Id"\t"Name"\n'],
  [
    `${csv} --delimiter tab`,
    65,
    /commas, not by tabs\. Use: --delimiter ','$/,
    'sep=,\r\nid,name\n',
  ],
]

describe('a mistake is answered in one line', () => {
  const folder = newFolder()
  let stored: string[]

  /** Everything that the commands could have changed. */
  async function readAll(): Promise<string[]> {
    const lines = ['token list --json', 'webhook list --json', 'export --quiet']
    const read: string[] = []
    for (const line of lines) read.push((await run(line.split(' '), { folder })).stdout)
    return [...read, ...readdirSync(folder)]
  }

  before(async () => {
    const args = ['import', '-', '--format', 'ndjson', '--create']
    await run(args, { folder, input: '{"id":1,"name":"a"}\n' })
    mkdirSync(join(folder, 'taken.csv'))
    stored = await readAll()
  })

  for (const [line, exitCode, message, input = ''] of [...words, ...values, ...files]) {
    const args = typeof line === 'string' ? line.split(' ') : line
    const of = input === '' ? '' : ` < ${input.slice(0, 30)}`
    it(`and with ${exitCode}: ${JSON.stringify(args.join(' ').slice(0, 60) + of)}`, async () => {
      const result = await run(args, { folder, input })
      const [said = '', ...rest] = result.stderr.split('\n')
      if (typeof message === 'string') assert.equal(said, message)
      else assert.match(said, message)
      assert.doesNotMatch(said, /s3cret/)
      assert.deepEqual([rest, result.stdout, result.exitCode], [[''], '', exitCode])
    })
  }

  it('and changes nothing in the store or the folder', async () => {
    assert.deepEqual(await readAll(), stored)
    assert.equal(stored[2], '{"id":1,"name":"a"}\n')
  })
})
