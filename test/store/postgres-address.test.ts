import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toAddress } from '../../src/store/postgres/address.ts'
import { UnusableStore } from '../../src/store/store.ts'

describe('an address of PostgreSQL', () => {
  it('names hosts by name, IPv4 and IPv6 address, each with its own port or 5432', () => {
    const { hosts } = toAddress('postgres://a:5433,127.0.0.1,[::1]:5434,[fe80::1]/plants')
    assert.deepEqual(hosts, [
      { host: 'a', port: 5433 },
      { host: '127.0.0.1', port: 5432 },
      { host: '::1', port: 5434 },
      { host: 'fe80::1', port: 5432 },
    ])
  })

  it('has a user, a password and a database, percent-encoded or absent', () => {
    const { user, password, database } = toAddress('postgresql://a%40b:p%2Fw@host/my%20plants')
    assert.deepEqual(
      { user, password, database },
      { user: 'a@b', password: 'p/w', database: 'my plants' },
    )
    const bare = toAddress('postgres://host')
    assert.deepEqual([bare.user, bare.password, bare.database], [undefined, undefined, undefined])
  })

  it('passes settings on to the server, a plus sign as itself', () => {
    const query =
      'application_name=a+b&options=-c%20geqo%3Doff&prepare=false&target_session_attrs=primary'
    const { settings, isPrepared, tls } = toAddress(`postgres://host/plants?${query}`)
    assert.deepEqual(settings, { application_name: 'a+b', options: '-c geqo=off' })
    assert.equal(isPrepared, false)
    assert.equal(tls.mode, 'prefer')
  })

  it('asks for TLS as libpq and JDBC do', () => {
    const modeOf = (query: string) => toAddress(`postgres://host/plants?${query}`).tls.mode
    assert.equal(modeOf('ssl=true'), 'require')
    assert.equal(modeOf('ssl=true&sslmode=verify-ca'), 'verify-ca')
    assert.equal(modeOf('sslrootcert=system'), 'verify-full')
  })

  const mistakes: [query: string, message: RegExp][] = [
    ['prepare=no', /^The parameter prepare of DATABASE_URL must be true or false\.$/],
    [
      'sslmode=require&sslmode=disable',
      /^DATABASE_URL has the parameter sslmode twice: leave one out\.$/,
    ],
    ['target_session_attrs=standby', /must be primary or read-write\.$/],
    ['password=secret', /^DATABASE_URL has an unknown parameter password: it may have sslmode, /],
    ['%1B[2J=x', /^DATABASE_URL has an unknown parameter without a proper name: /],
  ]
  for (const [query, message] of mistakes) {
    it(`is refused with one line that shows no value: ${query}`, () => {
      assert.throws(
        () => toAddress(`postgres://a:hidden@host/plants?${query}`),
        (error) =>
          error instanceof UnusableStore &&
          message.test(error.message) &&
          !/secret|hidden|\n/.test(error.message),
      )
    })
  }
})
