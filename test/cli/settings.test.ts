import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { run } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { startService } from '../support/service.ts'

/** A mistake in each setting that only the service needs. */
const wrong = {
  PORT: 'x',
  HOST: '/',
  WORKERS: '0',
  PLANT_STORE_TOKEN: 'short',
  AUTH_ISSUER: 'x',
  PUBLIC_URL: 'x',
  CORS_ORIGIN: 'x',
  RATE_LIMIT: '10',
  TRUST_PROXY: 'x',
  JOURNAL_KEEP: 'x',
  JOURNAL_MAX: 'x',
  LOG_LEVEL: 'x',
}

describe('a command reads only the settings that it needs', () => {
  it('revokes a token, whatever else is wrong', async () => {
    const folder = newFolder()
    const env = { ...wrong, DATABASE_URL: 'sqlite:plants.db' }
    const made = await run(['token', 'create', '--name', 'Ada'], { folder, env })
    assert.equal(made.exitCode, 0, made.stderr)
    const args = ['token', 'revoke', made.stdout.trim()]
    assert.equal((await run(args, { folder, env })).exitCode, 0)
  })

  const commands = [
    'backup copy.db',
    'check',
    'export',
    'import - --format ndjson',
    'log',
    'token list',
    'token prune',
    'webhook add https://plants.example',
    'webhook list',
    'restore copy.db --database sqlite:restored.db',
    'copy --from sqlite:plants.db --to sqlite:copied.db',
    'openapi',
  ]

  it('works on a store, whatever is wrong for the service', async () => {
    const folder = newFolder()
    const store = { DATABASE_URL: 'sqlite:plants.db' }
    await run(['token', 'create', '--name', 'Ada'], { folder, env: store })
    for (const command of commands) {
      const env = { ...wrong, ...store }
      const { exitCode, stderr } = await run(command.split(' '), { folder, env, input: '' })
      assert.equal(exitCode, 0, `${command}: ${stderr}`)
    }
  })

  it('asks whether a service is ready without knowing its store, or its port if it has a URL', async () => {
    const folder = newFolder()
    const { url } = await startService('sqlite::memory:')
    const env = { ...wrong, DATABASE_URL: 'x' }
    const byUrl = await run(['ready', '--url', url], { folder, env })
    assert.deepEqual(byUrl, { exitCode: 0, stdout: '', stderr: '' })
    const address = { HOST: '127.0.0.1', PORT: new URL(url).port }
    const byPort = await run(['ready'], { folder, env: { ...env, ...address } })
    assert.deepEqual(byPort, { exitCode: 0, stdout: '', stderr: '' })
    const { exitCode, stderr } = await run(['ready'], { folder, env })
    assert.match(stderr, /^PORT must be .+\nHOST must be .+\n$/)
    assert.equal(exitCode, 78)
  })

  it('serves nothing while any setting is wrong, and names each', async () => {
    const env = { ...wrong, DATABASE_URL: 'x' }
    const { exitCode, stderr } = await run(['serve'], { folder: newFolder(), env })
    const named = stderr.split('\n').map((line) => line.split(' ')[0])
    for (const name of Object.keys(env)) assert.ok(named.includes(name), `${name}: ${stderr}`)
    assert.equal(exitCode, 78)
  })
})
