import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newFolder } from '../support/folder.ts'
import { startService } from '../support/service.ts'
import { ends } from './ends.ts'

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
    const options = { folder, env: { ...wrong, ...store }, input: '' }
    const token = await ends('token create --name Ada', 0, /./, options)
    for (const command of commands) await ends(command, 0, /^/, options)
    await ends(`token revoke ${token.trim()}`, 0, /^Token \w+ was revoked\.\n$/, options)
  })

  it('asks whether a service is ready without knowing its store, or its port if it has a URL', async () => {
    const folder = newFolder()
    const { url } = await startService('sqlite::memory:')
    const env = { ...wrong, DATABASE_URL: 'x' }
    assert.equal(await ends(`ready --url ${url}`, 0, '', { folder, env }), '')
    const address = { HOST: '127.0.0.1', PORT: new URL(url).port }
    assert.equal(await ends('ready', 0, '', { folder, env: { ...env, ...address } }), '')
    await ends('ready', 78, /^PORT must be .+\nHOST must be .+\n$/, { folder, env })
  })

  it('serves nothing while any setting is wrong, and names each', async () => {
    const env = { ...wrong, DATABASE_URL: 'x' }
    const everyName = Object.keys(env).map((name) => `(?=.*^${name} )`)
    await ends('serve', 78, new RegExp(everyName.join(''), 'ms'), { folder: newFolder(), env })
  })
})
