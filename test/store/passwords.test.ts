import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findPassword } from '../../src/store/postgres/passwords.ts'

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

  it('is searched for an escaped host and user', () => {
    const odd = { ...server, host: '::1', user: 'a:b' }
    assert.equal(findPassword('\\:\\:1:*:*:a\\:b:secret', odd), 'secret')
  })
})
