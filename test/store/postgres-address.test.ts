import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toStoreLocation } from '../../src/store/open.ts'
import { toAddress } from '../../src/store/postgres/address.ts'
import { isRefusal } from '../support/refusal.ts'

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

  it('names a Unix socket by its folder', () => {
    const folder = '/var/run/postgresql'
    const hosts = (url: string) => toAddress(url).hosts
    assert.deepEqual(hosts(`postgres://ada@/plants?host=${folder}`), [{ host: folder, port: 5432 }])
    const encoded = 'postgres:///plants?host=%2Fvar%2Frun%2Fpostgresql&port=5433'
    assert.deepEqual(hosts(encoded), [{ host: folder, port: 5433 }])
    const several = [folder, 'b.example', '::1']
    const expected = several.map((host) => ({ host, port: 5433 }))
    assert.deepEqual(hosts(`postgres:///plants?host=${several}&port=5433`), expected)
  })

  it('has a user, a password and a database, percent-encoded or absent', () => {
    const whole = toAddress('postgresql://a%40b:p%2Fw@host/my%20plants')
    assert.deepEqual([whole.user, whole.password, whole.database], ['a@b', 'p/w', 'my plants'])
    const bare = toAddress('postgres://host')
    assert.deepEqual([bare.user, bare.password, bare.database], [undefined, undefined, undefined])
  })

  it('has parameters as they are written, a plus sign as itself', () => {
    const query =
      'application_name=a+b&options=-c%20geqo%3Doff&prepare=false&target_session_attrs=primary'
    const { parameters } = toAddress(`postgres://host/plants?${query}`)
    assert.deepEqual(parameters, {
      application_name: 'a+b',
      options: '-c geqo=off',
      prepare: 'false',
      target_session_attrs: 'primary',
      sslmode: 'prefer',
    })
  })

  it('takes a password, unless it has one', () => {
    const urls = ['postgres://ada@h/db', 'postgres://ada:@h/db', 'postgres:///db?host=/tmp']
    for (const url of urls) assert.equal(toAddress(url, 's3 cret:/@').password, 's3 cret:/@')
    assert.equal(toAddress('postgres://ada:own@h/db', 'other').password, 'own')
  })

  it('trusts the authorities of the machine only for the right name', () => {
    assert.equal(toAddress('postgres://host?sslrootcert=system').parameters.sslmode, 'verify-full')
  })

  const required = 'which needs sslmode=require, verify-ca or verify-full.'
  const mistakes: [query: string, message: string][] = [
    ['prepare=no', 'The parameter prepare of DATABASE_URL must be true or false.'],
    ['options=', 'The parameter options of DATABASE_URL must not be empty.'],
    ['sslmode=require&sslmode=disable', 'has the parameter sslmode twice: leave one out.'],
    ['target_session_attrs=standby', 'must be primary or read-write.'],
    ['password=secret', 'DATABASE_URL has an unknown parameter password: it may have host, '],
    ['ssl=true', 'DATABASE_URL has an unknown parameter ssl: it may have host, '],
    ['%1B[2J=x', 'DATABASE_URL has an unknown parameter without a proper name: '],
    ['channel_binding=on', 'must be disable, prefer or require.'],
    ['channel_binding=require', `DATABASE_URL has channel_binding=require, ${required}`],
    ['sslmode=verify-ca', 'DATABASE_URL has sslmode=verify-ca, which needs sslrootcert, '],
    ['sslrootcert=x', 'sslrootcert, but sslmode=prefer checks no certificate: '],
    ['sslmode=require&sslrootcert=system', 'which needs sslmode=verify-full: '],
    ['sslmode=require&sslcert=x', 'has only one of sslcert and sslkey: set both, or neither.'],
    ['host=/tmp', 'DATABASE_URL has a host and the parameter host: leave one out.'],
    ['port=5433', 'DATABASE_URL has a host and the parameter port: write HOST:PORT instead.'],
    ['connect_timeout=0', 'connect_timeout of DATABASE_URL must be from 1 to 600 seconds.'],
    ['connect_timeout=2s', 'must be from 1 to 600 seconds.'],
  ]
  for (const [query, message] of mistakes) {
    it(`is refused with one line that shows no value: ${query}`, () => {
      const refusal = isRefusal(new RegExp(RegExp.escape(message)), 'secret', 'hidden')
      assert.throws(() => toAddress(`postgres://a:hidden@host/plants?${query}`), refusal)
    })
  }

  const noAddresses = [
    'postgres:///plants',
    'postgres:///plants?host=',
    'postgres:///plants?host=a,b&port=1,2',
    'postgres://%2Ftmp/plants',
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
