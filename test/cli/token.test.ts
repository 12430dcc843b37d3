import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { run, runProcess, start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { query, startWithoutStandby } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { call } from '../support/wire.ts'

describe('plant-store token', () => {
  it('create prints the token alone, and keeps no trace of it', async () => {
    const folder = newFolder()
    const { exitCode, stdout, stderr } = await run(
      ['token', 'create', '--name', 'Ada', '--create'],
      { folder },
    )
    assert.equal(exitCode, 0)
    assert.match(stdout, /^plst_\w{36}\n$/)
    assert.match(
      stderr,
      /^Token tok_\w{12} \("Ada"\) has the scopes plants:read, plants:write and does not expire/,
    )
    const token = stdout.trim()
    for (const file of readdirSync(join(folder, 'data'))) {
      assert.equal(readFileSync(join(folder, 'data', file)).includes(token), false, file)
    }
  })

  it('create takes scopes and an end', async () => {
    const folder = newFolder()
    const args = [
      'token',
      'create',
      '--name',
      'Ada',
      '--scope',
      'plants:read',
      '--expires',
      '90d',
      '--json',
      '--create',
    ]
    const { token, ...view } = JSON.parse((await run(args, { folder })).stdout)
    assert.match(token, /^plst_/)
    assert.deepEqual(view.scopes, ['plants:read'])
    assert.equal(Date.parse(view.expiresAt) - Date.parse(view.createdAt), 90 * 86_400_000)
    const listed = JSON.parse((await run(['token', 'list', '--json'], { folder })).stdout)
    assert.deepEqual(listed, [view])
  })

  it('list shows every token without its secret', async () => {
    const folder = newFolder()
    const { stdout: token } = await run(['token', 'create', '--name', 'Ada', '--create'], {
      folder,
    })
    const { stdout } = await run(['token', 'list'], { folder })
    assert.match(
      stdout,
      /^ID +ENDS IN +NAME +SCOPES +STATE +CREATED +EXPIRES +LAST USED\ntok_\w{12} +\w{4} +Ada +plants:read,plants:write +active .* never +never\n$/,
    )
    assert.equal(stdout.includes(token.trim()), false)
    assert.ok(stdout.includes(` ${token.trim().slice(-4)} `))
  })

  it('revoke stops a token in a running service', async () => {
    const folder = newFolder()
    const created = await run(['token', 'create', '--name', 'Ada', '--json', '--create'], {
      folder,
    })
    const { token, id } = JSON.parse(created.stdout)
    const service = start(['serve'], { folder, env: { PORT: '0' } })
    const [, url = ''] = await service.waitFor(/address {3}(http:\S+)/)
    const ask = () =>
      call(url, { path: '/plants/1', headers: { Authorization: `Bearer ${token}` } })
    assert.equal((await ask()).status, 404)
    const { exitCode, stderr } = await runProcess(['token', 'revoke', id], { folder })
    assert.equal(stderr, `Token ${id} was revoked.\n`)
    assert.equal(exitCode, 0)
    await waitUntil(async () => (await ask()).status === 401, 'the token is refused')
    const [listed] = JSON.parse((await run(['token', 'list', '--json'], { folder })).stdout)
    assert.equal(listed.state, 'revoked')
  })

  for (const [expires, seconds] of Object.entries({ '1s': 1, '2m': 120, '3h': 10_800 })) {
    it(`create knows ${expires}`, async (test) => {
      test.mock.timers.enable({ apis: ['Date'], now: Date.now() })
      const folder = newFolder()
      const args = ['token', 'create', '--name', 'x'.repeat(200), '--expires', expires, '--json']
      const created = await run([...args, '--create'], { folder })
      const { createdAt, expiresAt } = JSON.parse(created.stdout)
      assert.equal(Date.parse(expiresAt) - Date.parse(createdAt), seconds * 1000)
      assert.deepEqual(readdirSync(join(folder, 'data')), ['plant-store.db'])
      for (const [ms, state] of [
        [-1, 'active'],
        [0, 'expired'],
      ] as const) {
        test.mock.timers.setTime(Date.parse(expiresAt) + ms)
        const [listed] = JSON.parse((await run(['token', 'list', '--json'], { folder })).stdout)
        assert.equal(listed.state, state)
      }
    })
  }
})

describe('plant-store token on a PostgreSQL that waits for a standby', () => {
  it('revoke does not say that it is done if the wait was cancelled', async () => {
    const { url, awaiting, stop } = await startWithoutStandby()
    releaseAfterTest(stop)
    const folder = newFolder()
    const env = { DATABASE_URL: url }
    await run(['token', 'create', '--name', 'Ada'], { folder, env })
    const [{ id }] = JSON.parse((await run(['token', 'list', '--json'], { folder, env })).stdout)
    const cancel = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
      WHERE wait_event = 'SyncRep'`
    const revoke = async () => {
      const revoked = run(['token', 'revoke', id], { folder, env: { DATABASE_URL: awaiting } })
      await waitUntil(async () => (await query(url, cancel)).length > 0, 'the commit waits')
      return revoked
    }
    const { exitCode, stderr } = await revoke()
    assert.equal(exitCode, 74)
    assert.match(stderr, /^The store did not confirm the change, so it may or may not have been/)
    // The second one finds it revoked, which no standby has confirmed either.
    assert.equal((await revoke()).exitCode, 74)
  })
})
