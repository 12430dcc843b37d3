import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { toExpiry } from '../../src/cli/flags.ts'
import { type Run, run } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { query, startWithoutStandby } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { ends, endsWith, readJson } from './ends.ts'

const createAda = 'token create --name Ada'

it('token create prints the token and keeps no trace of it; list shows its last characters', async () => {
  const folder = newFolder()
  const said =
    /^Token tok_\w{12} \("Ada"\) has the scopes plants:read, plants:write and does not expire/
  const stdout = await ends(`${createAda} --create`, 0, said, folder)
  assert.match(stdout, /^plst_\w{36}\n$/)
  const token = stdout.trim()
  for (const file of readdirSync(join(folder, 'data'))) {
    assert.equal(readFileSync(join(folder, 'data', file)).includes(token), false, file)
  }
  const listed = await ends('token list', 0, '', folder)
  assert.match(
    listed,
    /^ID {16}ENDS IN {2}NAME {2}SCOPES {20}STATE {3}CREATED +EXPIRES +LAST USED\ntok_\w{12} +\w{4} +Ada +plants:read,plants:write +active .* never +never\n$/,
  )
  assert.equal(listed.includes(token), false)
  assert.ok(listed.includes(` ${token.slice(-4)} `))
})

for (const engine of engines) {
  describe(`the tokens of a store on ${engine.name}`, () => {
    async function newStore() {
      const options = { folder: newFolder(), env: { DATABASE_URL: await engine.newUrl() } }
      const create = (flags = '') => readJson(createAda + flags, options)
      const list = () => readJson('token list', options)
      return { options, create, list }
    }

    it('are revoked by the id or by the token itself, which is not repeated', async () => {
      const { options, create, list } = await newStore()
      const [first, second] = [await create(), await create()]
      const rows: [argument: string, input: string, id: string][] = [
        [first.token, '', first.id],
        ['-', `  ${second.token}\n`, second.id],
        ['-', `${second.id}\n`, second.id],
      ]
      for (const [argument, input, id] of rows) {
        const said = new RegExp(`^Token ${id} was revoked( before)?\\.\\n$`)
        await ends(`token revoke ${argument}`, 0, said, { ...options, input })
      }
      const states = (await list()).map(({ state }: { state: string }) => state)
      assert.deepEqual(states, ['revoked', 'revoked'])
      const again = await readJson(`token revoke ${first.id}`, options)
      assert.deepEqual(again, { id: first.id, outcome: 'revoked before' })
    })

    it('have the scopes and the end that they were made with, and are listed so', async (test) => {
      test.mock.timers.enable({ apis: ['Date'], now: Date.now() })
      const { create, list } = await newStore()
      const { token, ...view } = await create(' --scope plants:read --expires 2m')
      assert.deepEqual([view.scopes, view.lastFour], [['plants:read'], token.slice(-4)])
      const expiresAt = Date.parse(view.expiresAt)
      assert.equal(expiresAt - Date.parse(view.createdAt), 120_000)
      test.mock.timers.setTime(expiresAt - 1)
      assert.deepEqual(await list(), [view])
      test.mock.timers.setTime(expiresAt)
      assert.deepEqual(await list(), [{ ...view, state: 'expired' }])
    })

    it('are pruned when they are expired or revoked', async (test) => {
      test.mock.timers.enable({ apis: ['Date'], now: Date.now() })
      const { options, create, list } = await newStore()
      const kept = await create()
      const revoked = await create()
      const expired = await create(' --expires 1s')
      await ends(`token revoke ${revoked.id}`, 0, /./, options)
      test.mock.timers.setTime(Date.parse(expired.expiresAt))
      assert.deepEqual(await readJson('token prune', options), { pruned: 2 })
      const { token: _, ...view } = kept
      assert.deepEqual(await list(), [view])
      await ends('token prune', 0, /^Forgot 0 tokens of \S+\.\n$/, options)
    })
  })
}

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
  it(`--expires is ${time ?? 'refused'} for ${text}`, () => {
    const expiry = toExpiry(text, now)
    assert.equal(expiry && new Date(expiry).toISOString(), time)
  })
}

it('token revoke does not say that it is done if its wait for a standby was cancelled', async () => {
  const { url, awaiting, stop } = await startWithoutStandby()
  releaseAfterTest(stop)
  const folder = newFolder()
  const env = { DATABASE_URL: url }
  const { id } = await readJson(createAda, { folder, env })
  const cancel = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
    WHERE wait_event = 'SyncRep'`
  /** A server that stalls may refuse the command before its commit waits: then it is repeated. */
  async function revoke(attempts = 5): Promise<Run> {
    let [isCancelled, hasEnded] = [false, false]
    const revoked = run(['token', 'revoke', id], { folder, env: { DATABASE_URL: awaiting } })
    revoked.finally(() => {
      hasEnded = true
    })
    await waitUntil(async () => {
      isCancelled = (await query(url, cancel)).length > 0
      return isCancelled || hasEnded
    }, 'the commit waits')
    const ended = await revoked
    const isRefused = !isCancelled && ended.exitCode !== 0
    return isRefused && attempts > 1 ? revoke(attempts - 1) : ended
  }
  // The second one finds it revoked, which no standby has confirmed either.
  for (const said of [/^The store did not confirm the change, so it may or may not have/, /./]) {
    await endsWith(revoke(), 74, said)
  }
})
