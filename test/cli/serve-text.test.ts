import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { describeStart, mayPrintToken, openLogger } from '../../src/cli/serve.ts'
import { type Environment, readConfig } from '../../src/config.ts'
import { collect } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'

const url = 'http://127.0.0.1:3000'
const operatorToken = 'a-token-of-the-operator'

const withToken = { PLANT_STORE_TOKEN: operatorToken }
const inMemory = { DATABASE_URL: 'sqlite::memory:' }
const program = { version: '1.0.0', command: 'npx plant-store' }

function show(env: Environment, firstToken?: string): string {
  return describeStart({ url, firstToken }, readConfig({}, env), program)
}

/** Settings, what is printed, and what is not. */
const rows: [title: string, env: Environment, shown: string | RegExp, hidden?: string][] = [
  ['never the token of the operator', withToken, /Bearer \$PLANT_STORE_TOKEN/, operatorToken],
  ['no hint at a token where there is one', withToken, /Store a plant/, 'token create'],
  ['PUBLIC_URL', { PUBLIC_URL: 'https://a.example/api/' }, /public {4}https:\/\/a\.example\/api\n/],
  ['that nothing is kept in memory', inMemory, /everything is lost when it stops/],
  [
    'the user that can make a token, where systemd runs the service',
    { JOURNAL_STREAM: '8:1', DATABASE_URL: 'sqlite:/var/lib/plants.db' },
    /\n\nMake a token, as the user that runs this service:\n\n {2}TOKEN=\$\(.*plants\.db'\)\n/,
  ],
  [
    'PLANT_STORE_TOKEN_FILE where no command reaches the store',
    { JOURNAL_STREAM: '8:1', ...inMemory },
    /A store in memory has no token unless PLANT_STORE_TOKEN_FILE names a file/,
    'token create',
  ],
  ['how to make a token', {}, 'TOKEN=$(npx plant-store token create --name me)'],
  [
    'how to make a token for another store',
    { DATABASE_URL: 'sqlite:my plants.db' },
    "--name me --database 'sqlite:my plants.db')",
  ],
  [
    'how to make a token on PostgreSQL, without its password',
    { DATABASE_URL: 'postgres://u:s3cret@h/db' },
    '--name me --database "$DATABASE_URL")',
    's3cret',
  ],
  ...['127.0.0.1', 'localhost', '::1', '127.1.2.3'].map((HOST): (typeof rows)[number] => [
    `no warning on ${HOST}`,
    { HOST },
    /address/,
    'warning',
  ]),
]

describe('what serve prints', () => {
  it('has the first token, and stores plant 1 with it', () => {
    const text = show({}, 'plst_first')
    assert.match(text, /token {5}plst_first \(shown once; keep it\)/)
    assert.match(
      text,
      /curl -w '\\n' http:\/\/127\.0\.0\.1:3000\/plants -H "Authorization: Bearer plst_first" .*"id":1,/,
    )
    assert.equal(text.includes('token create'), false)
  })

  for (const [title, env, shown, hidden] of rows) {
    it(`has ${title}`, () => {
      const text = show(env)
      if (typeof shown === 'string') assert.ok(text.includes(shown), text)
      else assert.match(text, shown)
      assert.equal(hidden !== undefined && text.includes(hidden), false, text)
    })
  }

  for (const host of ['0.0.0.0', '::', '192.0.2.7']) {
    it(`shows the address ${host} and warns that it is plain HTTP`, () => {
      const shown = host === '::' ? '\\[::\\]' : host
      const text = describeStart(
        { url: `http://${host === '192.0.2.7' ? host : '127.0.0.1'}:3000`, firstToken: undefined },
        readConfig({}, { HOST: host }),
        program,
      )
      assert.match(text, new RegExp(`address {3}http://${shown}:3000\\n`))
      assert.match(text, /warning {3}plain HTTP, open to other machines: put a TLS proxy in front/)
    })
  }

  it('reads the token of the operator from its file', () => {
    const path = join(newFolder(), "the operator's token")
    writeFileSync(path, operatorToken)
    const text = show({ PLANT_STORE_TOKEN_FILE: path })
    assert.ok(text.includes(`Bearer $(cat '${path.replaceAll("'", "'\\''")}')"`), text)
    assert.equal(text.includes(operatorToken), false)
  })

  it('may have a token on a terminal or in a pipe, and not in a journal', () => {
    const journaled = readConfig({}, { JOURNAL_STREAM: '8:1' })
    assert.equal(mayPrintToken(journaled, {}), false)
    assert.equal(mayPrintToken(journaled, { isTTY: true }), true)
    assert.equal(mayPrintToken(readConfig({}, {}), {}), true)
  })
})

/** A log on a terminal, and what it has written. */
function openLog() {
  const { stream, text } = collect()
  const logger = openLogger('info', Object.assign(stream, { isTTY: true }))
  return { logger, shown: text }
}

describe('the log on a terminal', () => {
  it('shows control characters as escapes, whichever member has them', () => {
    const { logger, shown } = openLog()
    const details = { code: '\u202e', '\u009b1m': 1 }
    const err = Object.assign(new Error('\u001b[2J\n\u001b[31m\u2028'), details)
    logger.info({ path: '/\u009b31m', err }, 'one \u001b]0;title\u0007 two\nthree')
    assert.match(shown(), /one \\u001b\]0;title\\u0007 two\\u000athree/)
    assert.match(shown(), /\\u009b31m/)
    assert.match(shown(), /\\u001b\[31m\\u2028/)
    assert.doesNotMatch(shown().replaceAll('\n', ''), /[\p{Cc}\u202e\u2028]/u)
  })

  it('has one line for an entry', () => {
    const { logger, shown } = openLog()
    logger.info({ requestId: 'a-1', statusCode: 200 }, 'answered')
    logger.debug('not shown')
    assert.match(shown(), /^\[[\d:]{8}\] INFO: answered \{"requestId":"a-1","statusCode":200\}\n$/)
  })

  it('has the stack of an error and of its cause below its line', () => {
    const { logger, shown } = openLog()
    const cause = new Error('the disk')
    const err = Object.assign(new Error('no commit', { cause }), { code: 'EIO' })
    logger.error({ err, requestId: 'a-1' }, 'failed')
    assert.match(
      shown(),
      /^\[[\d:]{8}\] ERROR: failed \{"err":\{.*"code":"EIO"\},"requestId":"a-1"\}\n {4}Error: no commit\n {8}at .+\n(?: {8}at .+\n)*? {4}caused by: Error: the disk\n {8}at /,
    )
  })
})
