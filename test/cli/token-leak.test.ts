import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toExpiry } from '../../src/cli/flags.ts'
import { newToken } from '../../src/tokens/format.ts'
import { run } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'

for (const engine of engines) {
  describe(`the tokens of a store on ${engine.name}`, () => {
    async function newStore() {
      const options = { folder: newFolder(), env: { DATABASE_URL: await engine.newUrl() } }
      const create = async (...flags: string[]) => {
        const args = ['token', 'create', '--name', 'Ada', '--json', ...flags]
        return JSON.parse((await run(args, options)).stdout)
      }
      const list = async () => JSON.parse((await run(['token', 'list', '--json'], options)).stdout)
      return { options, create, list }
    }

    it('are revoked by the token itself, which is not repeated', async () => {
      const { options, create, list } = await newStore()
      const { token, id } = await create()
      const revoked = await run(['token', 'revoke', token], options)
      assert.equal(revoked.stderr, `Token ${id} was revoked.\n`)
      assert.equal(revoked.exitCode, 0)
      const again = await run(['token', 'revoke', token, '--json'], options)
      assert.deepEqual(JSON.parse(again.stdout), { id, outcome: 'revoked before' })
      assert.deepEqual(
        (await list()).map(({ state }: { state: string }) => state),
        ['revoked'],
      )
    })

    for (const what of ['token', 'id'] as const) {
      it(`are revoked by the ${what} on standard input`, async () => {
        const { options, create } = await newStore()
        const created = await create()
        const input = `  ${created[what]}\n`
        const { exitCode, stderr } = await run(['token', 'revoke', '-'], { ...options, input })
        assert.equal(stderr, `Token ${created.id} was revoked.\n`)
        assert.equal(exitCode, 0)
      })
    }

    it('show their last four characters', async () => {
      const { create, list } = await newStore()
      const { token, lastFour } = await create()
      assert.equal(lastFour, token.slice(-4))
      assert.equal((await list())[0].lastFour, lastFour)
    })

    it('are pruned when they are expired or revoked', async (test) => {
      test.mock.timers.enable({ apis: ['Date'], now: Date.now() })
      const { options, create, list } = await newStore()
      const kept = await create()
      const revoked = await create()
      const expired = await create('--expires', '1s')
      await run(['token', 'revoke', revoked.id], options)
      test.mock.timers.setTime(Date.parse(expired.expiresAt))
      const pruned = await run(['token', 'prune', '--json'], options)
      assert.deepEqual(JSON.parse(pruned.stdout), { pruned: 2 })
      assert.deepEqual(
        (await list()).map(({ id }: { id: string }) => id),
        [kept.id],
      )
      assert.match((await run(['token', 'prune'], options)).stderr, /^Forgot 0 tokens of \S+\.\n$/)
    })
  })
}

describe('a token that cannot be revoked', () => {
  const given: [title: string, token: string, message: RegExp][] = [
    ['is of another store', newToken(), /^No token in sqlite:\S+ has this value\./],
    ['was chosen by the operator', 'correct-horse-battery', /^No token in \S+ has this value\./],
    ['is a JSON Web Token', 'eyJhbGciOiJFZERTQSJ9.e30.c2ln', /^No token in \S+ has this value\./],
    ['has a typing error', `${newToken().slice(0, -1)}.`, /^This is not a whole token/],
    ['is cut short', newToken().slice(0, -1), /^This is not a whole token/],
  ]
  for (const [title, token, message] of given) {
    it(`is not repeated when it ${title}`, async () => {
      const folder = newFolder()
      await run(['token', 'create', '--name', 'Ada', '--create'], { folder })
      for (const [argument, input] of [
        [token, ''],
        ['-', token],
      ]) {
        const args = ['token', 'revoke', argument as string]
        const { exitCode, stdout, stderr } = await run(args, { folder, input: input as string })
        assert.match(stderr, message)
        assert.equal((stdout + stderr).includes(token.slice(5, 15)), false)
        assert.equal(exitCode, 78)
      }
    })
  }

  it('is refused when standard input has anything but one word', async () => {
    const folder = newFolder()
    await run(['token', 'create', '--name', 'Ada', '--create'], { folder })
    for (const input of ['', '\n', 'tok_a tok_b', 'x'.repeat(100_000)]) {
      const { exitCode, stderr } = await run(['token', 'revoke', '-'], { folder, input })
      assert.equal(stderr, 'Standard input must hold one id or one token.\n')
      assert.equal(exitCode, 78)
    }
  })
})

describe('--expires', () => {
  const now = Date.parse('2028-02-29T12:00:00.123Z')
  const known: [text: string, time: string | undefined][] = [
    ['1s', '2028-02-29T12:00:01.123Z'],
    ['90d', '2028-05-29T12:00:00.123Z'],
    ['1y', '2029-03-01T12:00:00.123Z'],
    ['4y', '2032-02-29T12:00:00.123Z'],
    ['2028-03-01', '2028-03-01T00:00:00.000Z'],
    ['2030-01-31', '2030-01-31T00:00:00.000Z'],
    ['2028-02-29', undefined],
    ['2030-02-31', undefined],
    ['2030-13-01', undefined],
    ['99999y', undefined],
    ['0d', undefined],
    ['1w', undefined],
    ['-1d', undefined],
    ['2030-1-1', undefined],
    ['soon', undefined],
  ]
  for (const [text, time] of known) {
    it(`is ${time ?? 'refused'} for ${text}`, () => {
      const expiry = toExpiry(text, now)
      assert.equal(expiry && new Date(expiry).toISOString(), time)
    })
  }
})
