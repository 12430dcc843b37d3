import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { addPassword, findPassword } from '../../src/store/postgres/passwords.ts'

const server = { host: 'db.example', port: 5432, database: 'plants', user: 'ada' }

describe('a password file', () => {
  const lines: [title: string, content: string, password: string | undefined][] = [
    ['an entry', 'db.example:5432:plants:ada:secret', 'secret'],
    ['an entry that ends with CRLF', 'db.example:5432:plants:ada:secret\r\n', 'secret'],
    ['wildcards', '*:*:*:*:secret', 'secret'],
    ['the first of two entries', '*:*:*:ada:one\n*:*:*:ada:two', 'one'],
    ['another host', 'other.example:*:*:*:secret', undefined],
    ['another port', '*:5433:*:*:secret', undefined],
    ['another database', '*:*:trees:*:secret', undefined],
    ['another user', '*:*:*:bob:secret', undefined],
    ['a comment', '#*:*:*:*:secret', undefined],
    ['escaped colons and backslashes', '*:*:*:*:a\\:b\\\\c', 'a:b\\c'],
    ['an unescaped colon in the password', '*:*:*:*:a:b', 'a'],
    ['too few fields', '*:*:*:secret', undefined],
    ['an empty password', '*:*:*:*:', undefined],
    ['nothing', '', undefined],
  ]
  for (const [title, content, password] of lines) {
    it(`with ${title} gives ${password ?? 'none'}`, () => {
      assert.equal(findPassword(content, server), password)
    })
  }

  it('is searched for this machine with the usual Unix socket, else for the folder', () => {
    const usual = { ...server, host: '/var/run/postgresql' }
    assert.equal(findPassword('localhost:5432:plants:ada:secret', usual), 'secret')
    const other = { ...server, host: '/srv/db' }
    assert.equal(findPassword('localhost:*:*:*:one\n/srv/db:*:*:*:two', other), 'two')
  })

  it('is searched for an escaped host and user', () => {
    const odd = { ...server, host: '::1', user: 'a:b' }
    assert.equal(findPassword('\\:\\:1:*:*:a\\:b:secret', odd), 'secret')
  })
})

describe('an address of PostgreSQL', () => {
  const PGPASSWORD = 's3 cret:/@'
  const secret = encodeURIComponent(PGPASSWORD)
  const addresses: [url: string, expected: string][] = [
    ['postgres://ada@h/db', `postgres://ada:${secret}@h/db`],
    ['postgres://h/db', `postgres://:${secret}@h/db`],
    ['postgresql://a%40b@h:1,[::1]:2', `postgresql://a%40b:${secret}@h:1,[::1]:2`],
    ['postgres://ada@h/db?sslmode=require', `postgres://ada:${secret}@h/db?sslmode=require`],
    ['postgres://ada@/db?host=/tmp', `postgres://ada:${secret}@/db?host=/tmp`],
    ['postgres:///db?host=/tmp', `postgres://:${secret}@/db?host=/tmp`],
    ['postgres://ada:own@h/db', 'postgres://ada:own@h/db'],
  ]
  for (const [url, expected] of addresses) {
    it(`gets the password of the environment: ${url}`, () => {
      assert.deepEqual(addPassword(url, { PGPASSWORD }), { url: expected })
    })
  }

  it('stays as it is where no password is found', () => {
    assert.deepEqual(addPassword('postgres://h/db', {}), { url: 'postgres://h/db' })
    const env = { HOME: '/no/home', USER: 'ada' }
    assert.deepEqual(addPassword('postgres://h/db', env), { url: 'postgres://h/db' })
  })
})
