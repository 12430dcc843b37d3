import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toStoreLocation } from '../../src/store/open.ts'
import { type Address, type KeepAlive, toAddress } from '../../src/store/postgres/address.ts'
import { UnusableStore } from '../../src/store/store.ts'

/** How connections are probed, where the address does not say otherwise. */
function probe(members: Partial<KeepAlive>): KeepAlive {
  return { idleMs: 60_000, intervalMs: undefined, count: undefined, ...members }
}

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

  const folder = '/var/run/postgresql'
  const sockets: [url: string, hosts: { host: string; port: number }[]][] = [
    [`postgres:///plants?host=${folder}`, [{ host: folder, port: 5432 }]],
    ['postgres:///plants?host=%2Fvar%2Frun%2Fpostgresql&port=5433', [{ host: folder, port: 5433 }]],
    [`postgres://ada@/plants?host=${folder}`, [{ host: folder, port: 5432 }]],
    ['postgres://%2Fvar%2Frun%2Fpostgresql/plants', [{ host: folder, port: 5432 }]],
    ['postgres://ada:p@%2fvar%2frun%2fpostgresql:5433', [{ host: folder, port: 5433 }]],
    [
      `postgres:///plants?host=${folder},b.example,::1&port=5433,5434,5435`,
      [
        { host: folder, port: 5433 },
        { host: 'b.example', port: 5434 },
        { host: '::1', port: 5435 },
      ],
    ],
  ]
  for (const [url, hosts] of sockets) {
    it(`names a Unix socket by its folder, as for libpq: ${url}`, () => {
      assert.deepEqual(toAddress(url).hosts, hosts)
    })
  }

  const parameters: [query: string, expected: Partial<Address>][] = [
    ['', { connectTimeoutMs: 2_000, negotiation: 'postgres', keepAlive: probe({}) }],
    ['connect_timeout=10', { connectTimeoutMs: 10_000 }],
    ['sslnegotiation=postgres', { negotiation: 'postgres' }],
    ['sslnegotiation=direct&sslmode=require', { negotiation: 'direct' }],
    ['keepalives=0', { keepAlive: undefined }],
    ['keepalives=1', { keepAlive: probe({}) }],
    [
      'keepalives_idle=30&keepalives_interval=5&keepalives_count=3',
      { keepAlive: probe({ idleMs: 30_000, intervalMs: 5_000, count: 3 }) },
    ],
    ['channel_binding=prefer', {}],
    ['channel_binding=disable', {}],
  ]
  for (const [query, expected] of parameters) {
    it(`means the same as for libpq: ${query || 'no parameter'}`, () => {
      const address = toAddress(`postgres://host/plants?${query}`)
      for (const [name, value] of Object.entries(expected)) {
        assert.deepEqual(address[name as keyof Address], value, name)
      }
    })
  }

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
    [
      'password=secret',
      /^DATABASE_URL has an unknown parameter password: it may have host, port, /,
    ],
    [
      'sslmode=require&channel_binding=require',
      /^DATABASE_URL has channel_binding=require, which the service cannot do: leave it out, and /,
    ],
    ['channel_binding=on', /must be disable, prefer or require\.$/],
    ['host=/tmp', /^DATABASE_URL has a host and the parameter host: leave one out\.$/],
    ['port=5433', /^DATABASE_URL has a host and the parameter port: write HOST:PORT instead\.$/],
    [
      'connect_timeout=0',
      /connect_timeout of DATABASE_URL must be a whole number from 1 to 600\.$/,
    ],
    ['connect_timeout=2s', /must be a whole number from 1 to 600\.$/],
    [
      'sslnegotiation=direct',
      /^DATABASE_URL has sslnegotiation=direct, which needs sslmode=require, verify-ca or verify-/,
    ],
    ['sslnegotiation=tls', /must be postgres or direct\.$/],
    ['keepalives=yes', /must be 0 or 1\.$/],
    ['keepalives_idle=-1', /must be a whole number from 1 to 32767\.$/],
    ['keepalives_count=128', /must be a whole number from 1 to 127\.$/],
    [
      'tcp_user_timeout=1000',
      /^DATABASE_URL has the parameter tcp_user_timeout, which Node\.js cannot set: leave it out\./,
    ],
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

  const noAddresses = [
    'postgres:///plants',
    'postgres:///plants?host=',
    'postgres:///plants?host=a,b&port=1,2,3',
    'postgres:///plants?host=/tmp&port=65536',
    'postgres:///plants?host=a b',
    'postgres://%2Ftmp%/plants',
  ]
  for (const url of noAddresses) {
    it(`is none: ${url}`, () => {
      assert.throws(() => toAddress(url), /^UnusableStore: DATABASE_URL must be postgres:/)
      assert.equal(toStoreLocation(url), undefined)
    })
  }

  it('is shown with the folder of its Unix socket and without its password', () => {
    const { label } = toStoreLocation('postgres://ada:hidden@/plants?port=1&host=/tmp') ?? {}
    assert.equal(label, 'postgres://ada@/plants?host=/tmp')
  })
})
