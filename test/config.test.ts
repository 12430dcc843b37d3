import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { type Config, readConfig, WrongConfig } from '../src/config.ts'
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
    const tooShort = /^PLANT_STORE_TOKEN_FILE must hold 20 or more visible ASCII characters\.$/
    const refuses = (file: string, message: RegExp) =>
      assert.throws(() => readConfig({}, { PLANT_STORE_TOKEN_FILE: file }), { message })
    for (const content of ['too-short', 'a-token-of-the-operator\n\n', 'x'.repeat(10_000)]) {
      writeFileSync(path, content)
      refuses(path, tooShort)
    }
    refuses('/dev/zero', tooShort)
    refuses(join(folder, 'none'), /^PLANT_STORE_TOKEN_FILE: cannot read .*none: there is no such/)
    refuses(folder, /^PLANT_STORE_TOKEN_FILE: cannot read .*: it is a folder\.$/)
    const both = { PLANT_STORE_TOKEN: 'a-token-of-the-operator', PLANT_STORE_TOKEN_FILE: path }
    assert.throws(() => readConfig({}, both), {
      message: 'Set PLANT_STORE_TOKEN or PLANT_STORE_TOKEN_FILE, not both.',
    })
  })

  const login = 'https://login.example'
  const withIssuer = (url: string) => ({ AUTH_ISSUER: url, AUTH_AUDIENCE: 'plants' })
  const hourMs = 3_600_000
  const gib = 2 ** 30
  const journalKeepMs = 365 * 24 * hourMs
  /** Settings, and what becomes of them. */
  const right: [env: Record<string, string>, config: Partial<Config>][] = [
    [{ DATABASE_URL: 'sqlite:data/plant-store.db' }, { isStoreNamed: true }],
    [{ JOURNAL_KEEP: '1h' }, { journalKeepMs: hourMs }],
    [{ JOURNAL_KEEP: '8760h' }, { journalKeepMs }],
    [{ JOURNAL_KEEP: '365d' }, { journalKeepMs }],
    [{ JOURNAL_KEEP: 'off' }, { journalKeepMs: 'off' }],
    [{ JOURNAL_MAX: '16MiB' }, { journalMaxBytes: gib / 64 }],
    [{ JOURNAL_MAX: '262144MiB' }, { journalMaxBytes: 256 * gib }],
    [{ JOURNAL_MAX: '256GiB' }, { journalMaxBytes: 256 * gib }],
    // An issuer is compared letter by letter.
    ...[
      'https://login.example/realms/Plants/',
      login,
      'http://127.0.0.1:8080/realms/plants',
      'http://localhost:8080',
      'http://[::1]:8080',
    ].map((url): (typeof right)[number] => [
      withIssuer(url),
      { issuer: { url, audience: 'plants' } },
    ]),
  ]
  for (const [env, config] of right) {
    it(`takes ${JSON.stringify(env)}`, () => {
      assert.partialDeepStrictEqual(readConfig({}, env), config)
    })
  }

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

  /** A variable, what must not stand in it, and the message. */
  const wrongValues: [name: string, values: string[], message: RegExp][] = [
    ['PORT', ['65536'], /^PORT must be a number from 0 to 65535, not "65536"\.$/],
    ['PORT', [''], /^PORT must be .*, not ""\.$/],
    ['PORT', [`8\n${'9'.repeat(200)}`], /^PORT must be .*, not "8\\n9{58}…"\.$/],
    ['HOST', ['no host'], /^HOST must be .*, not "no host"\.$/],
    ['WORKERS', ['0'], /^WORKERS must be/],
    ['DATABASE_URL', ['mysql://x:s3cret'], /^DATABASE_URL must be sqlite:PATH.*, not "mysql:…"\.$/],
    ['DATABASE_URL', ['plants.db'], /^DATABASE_URL must be .*, not "plants\.db"\.$/],
    [
      'DATABASE_URL',
      [
        'password=s3cret',
        'postgres:s3cret',
        'sqlite:',
        'postgres://u:p@s3cret@h/db',
        'postgres://:5432/db',
        'postgres://a:s3/cret@h/db',
        'postgres://a:b@h h/db',
        'postgres://a:b@[::1/db',
        'postgres://a:p%zz@h/db',
        'postgres://a:s3cret@127.0.0.1:99999/db',
      ],
      /^DATABASE_URL must be sqlite:PATH(?!.*s3)/,
    ],
    [
      'DATABASE_URL',
      ['sqlite://x.db'],
      /^DATABASE_URL must not have \/\/: write sqlite:x\.db for a path in this folder, or sqlite:\/x\.db\.$/,
    ],
    ['DATABASE_URL', ['sqlite:///var/x.db'], /^DATABASE_URL must not have \/\/: write sqlite:var/],
    [
      'PLANT_STORE_TOKEN',
      ['too-short', 'with a space in between'],
      /^PLANT_STORE_TOKEN must be 20 or more visible ASCII characters\.$/,
    ],
    ['PUBLIC_URL', ['plants.example'], /^PUBLIC_URL must be .*, not "plants\.example"\.$/],
    [
      'PUBLIC_URL',
      [
        'https://plants.example?x=y',
        'https://plants.example/?',
        'https://plants.example/#',
        'ftp://plants.example',
        'https://user:secret@plants.example',
      ],
      /^PUBLIC_URL must be[^@]*$/,
    ],
    ['CORS_ORIGIN', ['https://a.example/path'], /^CORS_ORIGIN must be/],
    ['LOG_LEVEL', ['loud'], /^LOG_LEVEL must be one of fatal.*, not "loud"\.$/],
    ['RATE_LIMIT', ['10', '0/s', '5/d', 'plst_s3cret'], /^RATE_LIMIT must be (?!.*s3)/],
    [
      'JOURNAL_KEEP',
      ['', '0h', '30m', '366d', '9000h', '7', '1.5d', 'OFF'],
      /^JOURNAL_KEEP must be a time from 1h to 365d, such as 48h or 7d, or off, not "[^"]*"\.$/,
    ],
    [
      'JOURNAL_MAX',
      ['', '0MiB', '15MiB', '257GiB', '262145MiB', '1GB', '1.5GiB', '1073741824', 'off'],
      /^JOURNAL_MAX must be a size from 16MiB to 256GiB, such as 512MiB or 1GiB, not "[^"]*"\.$/,
    ],
  ]
  const notIssuers = [
    'login.example',
    'http://login.example',
    'http://127.0.0.1.example',
    'https://login.example?x=y',
    'https://login.example#x',
    'https://user@login.example',
    'file:///etc/passwd',
    '',
  ]
  const wrong: [env: Record<string, string>, message: RegExp][] = [
    ...wrongValues.flatMap(([name, values, message]) =>
      values.map((value): (typeof wrong)[number] => [{ [name]: value }, message]),
    ),
    ...notIssuers.map((url): (typeof wrong)[number] => [
      withIssuer(url),
      /^AUTH_ISSUER must be an https address without a query/,
    ]),
    [
      { AUTH_ISSUER: login },
      /^AUTH_ISSUER and AUTH_AUDIENCE need each other: set both, or neither\.$/,
    ],
    [{ AUTH_AUDIENCE: 'plants' }, /^AUTH_ISSUER and AUTH_AUDIENCE need each other/],
    [{ AUTH_ISSUER: login, AUTH_AUDIENCE: '' }, /^AUTH_AUDIENCE must not be empty\.$/],
  ]
  for (const [env, message] of wrong) {
    it(`refuses ${JSON.stringify(env)} with one line`, () => {
      const isRight = (error: unknown) =>
        error instanceof WrongConfig && message.test(error.message) && !/\n/.test(error.message)
      assert.throws(() => readConfig({}, env), isRight)
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
    const { isStoreNamed: _, ...unset } = readConfig({}, {})
    for (const { names, fallback } of defaults) {
      const { isStoreNamed: _, ...config } = readConfig({}, { [`${names[0]}`]: fallback })
      assert.deepEqual(config, unset, names[0])
    }
  })
})
