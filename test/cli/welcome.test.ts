import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { describeStart, mayPrintToken } from '../../src/cli/welcome.ts'
import { type Environment, readConfig } from '../../src/config.ts'
import { newFolder } from '../support/folder.ts'

const url = 'http://127.0.0.1:3000'
const operatorToken = 'a-token-of-the-operator'

const program = { version: '1.0.0', command: 'npx plant-store' }

function show(env: Environment, firstToken?: string): string {
  return describeStart({ url, firstToken }, readConfig({}, env), program)
}

describe('what serve prints', () => {
  it('has the first token, and stores plant 1 with it', () => {
    const text = show({}, 'plst_first')
    assert.match(text, /token {5}plst_first \(shown once; keep it\)/)
    assert.match(
      text,
      /curl http:\/\/127\.0\.0\.1:3000\/plants -H "Authorization: Bearer plst_first" .*"id":1,/,
    )
    assert.equal(text.includes('token create'), false)
  })

  it('never has the token of the operator', () => {
    const text = show({ PLANT_STORE_TOKEN: operatorToken })
    assert.match(text, /Bearer \$PLANT_STORE_TOKEN/)
    assert.equal(text.includes(operatorToken) || text.includes('token create'), false)
  })

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

  it('warns of nothing on a loopback address', () => {
    for (const host of ['127.0.0.1', 'localhost', '::1', '127.1.2.3']) {
      const started = { url, firstToken: undefined }
      const text = describeStart(started, readConfig({}, { HOST: host }), program)
      assert.doesNotMatch(text, /warning/)
    }
  })

  it('shows PUBLIC_URL', () => {
    assert.match(
      show({ PUBLIC_URL: 'https://plants.example/api/' }),
      /public {4}https:\/\/plants\.example\/api\n/,
    )
  })

  it('reads the token of the operator from its file', () => {
    const path = join(newFolder(), "the operator's token")
    writeFileSync(path, operatorToken)
    const text = show({ PLANT_STORE_TOKEN_FILE: path })
    assert.ok(text.includes(`Bearer $(cat '${path.replaceAll("'", "'\\''")}')"`), text)
    assert.equal(text.includes(operatorToken), false)
  })

  it('says that nothing is kept in memory', () => {
    assert.match(show({ DATABASE_URL: 'sqlite::memory:' }), /everything is lost when it stops/)
  })

  it('may have a token on a terminal or in a pipe, and not in a journal', () => {
    const journaled = readConfig({}, { JOURNAL_STREAM: '8:1' })
    assert.equal(mayPrintToken(journaled, { output: {} }), false)
    assert.equal(mayPrintToken(journaled, { output: { isTTY: true } }), true)
    assert.equal(mayPrintToken(readConfig({}, {}), { output: {} }), true)
  })

  it('names the user that can make a token, where systemd runs the service', () => {
    const env = { JOURNAL_STREAM: '8:1', DATABASE_URL: 'sqlite:/var/lib/plants.db' }
    assert.match(
      show(env),
      /\n\nMake a token, as the user that runs this service:\n\n {2}TOKEN=\$\(.*plants\.db'\)\n/,
    )
  })

  it('points to PLANT_STORE_TOKEN_FILE where no command reaches the store', () => {
    const text = show({ JOURNAL_STREAM: '8:1', DATABASE_URL: 'sqlite::memory:' })
    assert.match(text, /A store in memory has no token unless PLANT_STORE_TOKEN_FILE names a file/)
    assert.equal(text.includes('token create'), false)
  })

  const hints: [env: Environment, hint: string][] = [
    [{}, 'TOKEN=$(npx plant-store token create --name me)'],
    [{ DATABASE_URL: 'sqlite:my plants.db' }, "--name me --database 'sqlite:my plants.db')"],
    [{ DATABASE_URL: 'postgres://u:s3cret@h/db' }, '--name me --database "$DATABASE_URL")'],
  ]
  for (const [env, hint] of hints) {
    it(`says how to make a token for ${env.DATABASE_URL ?? 'the usual store'}`, () => {
      const text = show(env)
      assert.ok(text.includes(hint), text)
      assert.equal(text.includes('s3cret'), false)
    })
  }
})
