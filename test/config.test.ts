import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { readConfig, WrongConfig } from '../src/config.ts'
import { newFolder } from './support/folder.ts'

describe('the configuration', () => {
  it('has a default for everything', () => {
    const { storeLocation, ...config } = readConfig({}, {})
    assert.deepEqual(config, {
      port: 3000,
      host: '127.0.0.1',
      workers: 1,
      operatorToken: undefined,
      operatorTokenFile: undefined,
      issuer: undefined,
      publicUrl: undefined,
      allowedOrigins: '*',
      rateLimit: undefined,
      trustedProxies: 0,
      journalKeepMs: 604_800_000,
      journalMaxBytes: 1_073_741_824,
      logLevel: 'info',
      isUnderSystemd: false,
      isStoreNamed: false,
    })
    assert.equal(storeLocation.label, 'sqlite:data/plant-store.db')
  })

  it('lets a flag win over its variable', () => {
    const flags = { port: '1', host: 'a.example', database: 'sqlite:a.db', workers: '1' }
    const env = { PORT: '2', HOST: 'b.example', DATABASE_URL: 'sqlite:b.db', WORKERS: '2' }
    const { port, host, storeLocation, workers } = readConfig(flags, env)
    assert.deepEqual([port, host, storeLocation.label, workers], [1, 'a.example', 'sqlite:a.db', 1])
  })

  it('tells whether the operator named the store', () => {
    const url = 'sqlite:data/plant-store.db'
    assert.equal(readConfig({}, { DATABASE_URL: url }).isStoreNamed, true)
    assert.equal(readConfig({ database: url }, {}).isStoreNamed, true)
  })

  it('reads the token of the operator from a file, without its last newline', () => {
    const path = join(newFolder(), 'token')
    for (const end of ['', '\n', '\r\n']) {
      writeFileSync(path, `a-token-of-the-operator${end}`)
      const { operatorToken } = readConfig({}, { PLANT_STORE_TOKEN_FILE: path })
      assert.equal(operatorToken, 'a-token-of-the-operator')
    }
  })

  it('refuses a token in a file as it refuses one in the environment', () => {
    const folder = newFolder()
    const path = join(folder, 'token')
    const wrong: [content: string, message: RegExp][] = [
      ['too-short', /^PLANT_STORE_TOKEN_FILE must hold 20 or more visible ASCII characters\.$/],
      ['a-token-of-the-operator\n\n', /^PLANT_STORE_TOKEN_FILE must hold 20 or more/],
      ['x'.repeat(10_000), /^PLANT_STORE_TOKEN_FILE must hold 20 or more/],
    ]
    for (const [content, message] of wrong) {
      writeFileSync(path, content)
      assert.throws(() => readConfig({}, { PLANT_STORE_TOKEN_FILE: path }), { message })
    }
    const files: [path: string, message: RegExp][] = [
      [join(folder, 'none'), /^PLANT_STORE_TOKEN_FILE: cannot read .*none: there is no such file/],
      [folder, /^PLANT_STORE_TOKEN_FILE: cannot read .*: it is a folder\.$/],
      ['/dev/zero', /^PLANT_STORE_TOKEN_FILE must hold 20 or more/],
    ]
    for (const [file, message] of files) {
      assert.throws(() => readConfig({}, { PLANT_STORE_TOKEN_FILE: file }), { message })
    }
    const both = { PLANT_STORE_TOKEN: 'a-token-of-the-operator', PLANT_STORE_TOKEN_FILE: path }
    assert.throws(() => readConfig({}, both), {
      message: 'Set PLANT_STORE_TOKEN or PLANT_STORE_TOKEN_FILE, not both.',
    })
  })

  it('keeps the journal for a week, or as long as it is told', () => {
    const hourMs = 3_600_000
    const keepMs = (env: Record<string, string>) => readConfig({}, env).journalKeepMs
    assert.equal(keepMs({}), 7 * 24 * hourMs)
    assert.equal(keepMs({ JOURNAL_KEEP: '1h' }), hourMs)
    assert.equal(keepMs({ JOURNAL_KEEP: '8760h' }), 365 * 24 * hourMs)
    assert.equal(keepMs({ JOURNAL_KEEP: '365d' }), 365 * 24 * hourMs)
    assert.equal(keepMs({ JOURNAL_KEEP: 'off' }), 'off')
  })

  it('keeps up to 1 GiB of the journal, or as much as it is told', () => {
    const maxMib = (text: string) => readConfig({}, { JOURNAL_MAX: text }).journalMaxBytes / 2 ** 20
    assert.equal(maxMib('16MiB'), 16)
    assert.equal(maxMib('512MiB'), 512)
    assert.equal(maxMib('262144MiB'), 256 * 1024)
    assert.equal(maxMib('256GiB'), 256 * 1024)
  })

  it('shows a store without its password', () => {
    const labels: Record<string, string> = {
      'sqlite::memory:': 'sqlite::memory:',
      'postgres://h/db': 'postgres://h/db',
      'postgres://u:s3cret@a:1,b:2/db?sslmode=require': 'postgres://u@a:1,b:2/db',
      'postgresql://u@[::1]:5432/db': 'postgresql://u@[::1]:5432/db',
    }
    for (const [url, label] of Object.entries(labels)) {
      assert.equal(readConfig({}, { DATABASE_URL: url }).storeLocation.label, label)
    }
  })

  it('trusts the issuer that both variables name, letter by letter', () => {
    const urls = [
      'https://login.example/realms/Plants/',
      'https://login.example',
      'http://127.0.0.1:8080/realms/plants',
      'http://localhost:8080',
      'http://[::1]:8080',
    ]
    for (const url of urls) {
      const { issuer } = readConfig({}, { AUTH_ISSUER: url, AUTH_AUDIENCE: 'plants' })
      assert.deepEqual(issuer, { url, audience: 'plants' })
    }
  })

  const wrong: [env: Record<string, string>, message: RegExp][] = [
    [{ PORT: '65536' }, /^PORT must be a number from 0 to 65535, not "65536"\.$/],
    [{ PORT: '' }, /^PORT must be .*, not ""\.$/],
    [{ PORT: `8\n${'9'.repeat(200)}` }, /^PORT must be .*, not "8\\n9{58}…"\.$/],
    [{ HOST: 'no host' }, /^HOST must be .*, not "no host"\.$/],
    [{ DATABASE_URL: 'mysql://x:s3cret' }, /^DATABASE_URL must be sqlite:PATH.*, not "mysql:…"\.$/],
    [{ DATABASE_URL: 'plants.db' }, /^DATABASE_URL must be .*, not "plants\.db"\.$/],
    [{ DATABASE_URL: 'password=s3cret' }, /^DATABASE_URL must be (?!.*s3)/],
    [{ DATABASE_URL: 'postgres:s3cret' }, /^DATABASE_URL must be (?!.*s3)/],
    [{ DATABASE_URL: 'sqlite:' }, /^DATABASE_URL must be/],
    [
      { DATABASE_URL: 'sqlite://x.db' },
      /^DATABASE_URL must not have \/\/: write sqlite:x\.db for a path in this folder, or sqlite:\/x\.db\.$/,
    ],
    [{ DATABASE_URL: 'sqlite:///var/x.db' }, /^DATABASE_URL must not have \/\/: write sqlite:var/],
    [{ DATABASE_URL: 'postgres://u:p@s3cret@h/db' }, /^DATABASE_URL must be sqlite:PATH(?!.*s3)/],
    [{ DATABASE_URL: 'postgres://:5432/db' }, /^DATABASE_URL must be sqlite:PATH(?!.*s3)/],
    [{ DATABASE_URL: 'postgres://a:s3/cret@h/db' }, /^DATABASE_URL must be sqlite:PATH(?!.*s3)/],
    [{ DATABASE_URL: 'postgres://a:b@h h/db' }, /^DATABASE_URL must be sqlite:PATH(?!.*s3)/],
    [{ DATABASE_URL: 'postgres://a:b@[::1/db' }, /^DATABASE_URL must be sqlite:PATH(?!.*s3)/],
    [{ DATABASE_URL: 'postgres://a:p%zz@h/db' }, /^DATABASE_URL must be sqlite:PATH(?!.*s3)/],
    [
      { DATABASE_URL: 'postgres://a:s3cret@127.0.0.1:99999/db' },
      /^DATABASE_URL must be sqlite:PATH(?!.*s3)/,
    ],
    [
      { PLANT_STORE_TOKEN: 'too-short' },
      /^PLANT_STORE_TOKEN must be 20 or more visible ASCII characters\.$/,
    ],
    [{ PLANT_STORE_TOKEN: 'with a space in between' }, /^PLANT_STORE_TOKEN must be/],
    ...[
      'login.example',
      'http://login.example',
      'http://127.0.0.1.example',
      'https://login.example?x=y',
      'https://login.example#x',
      'https://user@login.example',
      'file:///etc/passwd',
      '',
    ].map((issuer): [Record<string, string>, RegExp] => [
      { AUTH_ISSUER: issuer, AUTH_AUDIENCE: 'plants' },
      /^AUTH_ISSUER must be an https address without a query/,
    ]),
    [
      { AUTH_ISSUER: 'https://login.example' },
      /^AUTH_ISSUER needs AUTH_AUDIENCE as well: set both, or neither\.$/,
    ],
    [{ AUTH_AUDIENCE: 'plants' }, /^AUTH_AUDIENCE needs AUTH_ISSUER as well/],
    [
      { AUTH_ISSUER: 'https://login.example', AUTH_AUDIENCE: '' },
      /^AUTH_AUDIENCE must not be empty\.$/,
    ],
    [{ PUBLIC_URL: 'plants.example' }, /^PUBLIC_URL must be .*, not "plants\.example"\.$/],
    [{ PUBLIC_URL: 'https://plants.example?x=y' }, /^PUBLIC_URL must be/],
    [{ PUBLIC_URL: 'https://plants.example/?' }, /^PUBLIC_URL must be/],
    [{ PUBLIC_URL: 'https://plants.example/#' }, /^PUBLIC_URL must be/],
    [{ PUBLIC_URL: 'ftp://plants.example' }, /^PUBLIC_URL must be/],
    [{ PUBLIC_URL: 'https://user:secret@plants.example' }, /^PUBLIC_URL must be[^@]*$/],
    [{ CORS_ORIGIN: 'https://a.example/path' }, /^CORS_ORIGIN must be/],
    [{ LOG_LEVEL: 'loud' }, /^LOG_LEVEL must be one of fatal.*, not "loud"\.$/],
    [{ RATE_LIMIT: '10' }, /^RATE_LIMIT must be .*, not "10"\.$/],
    [{ RATE_LIMIT: 'plst_s3cret' }, /^RATE_LIMIT must be (?!.*s3)/],
    [{ RATE_LIMIT: '0/s' }, /^RATE_LIMIT must be/],
    [{ RATE_LIMIT: '5/d' }, /^RATE_LIMIT must be/],
    ...['', '0h', '30m', '366d', '9000h', '7', '1.5d', 'OFF'].map(
      (keep): [Record<string, string>, RegExp] => [
        { JOURNAL_KEEP: keep },
        new RegExp(
          `^JOURNAL_KEEP must be a time from 1h to 365d, such as 48h or 7d, or off, not "${keep}"\\.$`,
        ),
      ],
    ),
    ...['', '0MiB', '15MiB', '257GiB', '262145MiB', '1GB', '1.5GiB', '1073741824', 'off'].map(
      (max): [Record<string, string>, RegExp] => [
        { JOURNAL_MAX: max },
        new RegExp(
          `^JOURNAL_MAX must be a size from 16MiB to 256GiB, such as 512MiB or 1GiB, not "${max}"\\.$`,
        ),
      ],
    ),
    [{ WORKERS: '0' }, /^WORKERS must be/],
  ]
  for (const [env, message] of wrong) {
    it(`refuses ${JSON.stringify(env)} with one line`, () => {
      assert.throws(
        () => readConfig({}, env),
        (error) =>
          error instanceof WrongConfig &&
          message.test(error.message) &&
          !error.message.includes('\n'),
      )
    })
  }
})

describe('the table of settings in docs/running.md', () => {
  const page = readFileSync(join(import.meta.dirname, '../docs/running.md'), 'utf8')
  const [, section = ''] = /^## Settings\n(.+?)^## /ms.exec(page) ?? []
  const rows = [...section.matchAll(/^\| (.+?) \| (.*?) ?\| .+ \|$/gm)].map(
    ([, names = '', fallback = '']) => ({
      names: [...names.matchAll(/`([A-Z_]+)`/g)].map(([, name = '']) => name),
      fallback: fallback.replaceAll('`', ''),
    }),
  )

  it('has every variable that the service reads, and no other', () => {
    // The driver of PostgreSQL reads PGPASSFILE. JOURNAL_STREAM is set by systemd, not by people.
    const readNames = new Set(['PGPASSFILE'])
    const values: Record<string, string> = { DATABASE_URL: 'postgres://me@db.example/plants' }
    const env = new Proxy(values, {
      get(target, name) {
        readNames.add(String(name))
        return target[String(name)]
      },
    })
    readConfig({}, env)
    readNames.delete('JOURNAL_STREAM')
    assert.deepEqual(rows.flatMap(({ names }) => names).sort(), [...readNames].sort())
  })

  it('has defaults that change nothing when they are set', () => {
    const defaults = rows.filter(
      ({ names: [name = ''], fallback }) => !fallback.startsWith('none') && /^[A-Z]/.test(name),
    )
    assert.ok(defaults.length > 6)
    for (const {
      names: [name = ''],
      fallback,
    } of defaults) {
      const { isStoreNamed: _, ...config } = readConfig({}, { [name]: fallback })
      const { isStoreNamed: __, ...unset } = readConfig({}, {})
      assert.deepEqual(config, unset, name)
    }
  })
})
