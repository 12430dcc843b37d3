import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { describeStart } from '../../src/cli/serve/welcome.ts'
import { type Environment, readConfig } from '../../src/config.ts'

const url = 'http://127.0.0.1:3000'
const operatorToken = 'a-token-of-the-operator'

function show(env: Environment, firstToken?: string): string {
  return describeStart({ url, firstToken }, readConfig({}, env), '1.0.0')
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

  it('says that nothing is kept in memory', () => {
    assert.match(show({ DATABASE_URL: 'sqlite::memory:' }), /everything is lost when it stops/)
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
