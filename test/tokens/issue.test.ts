import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hashToken, isWellFormed, newToken, newTokenId } from '../../src/tokens/issue.ts'

describe('a token', () => {
  it('has the prefix, 30 random characters and a valid checksum', () => {
    for (let round = 0; round < 200; round++) {
      const token = newToken()
      assert.match(token, /^plst_[0-9A-Za-z]{36}$/)
      assert.equal(isWellFormed(token), true)
    }
  })

  it('uses every character of the alphabet, and is never generated twice', () => {
    const tokens = Array.from({ length: 500 }, newToken)
    assert.equal(new Set(tokens).size, 500)
    assert.equal(new Set(tokens.map((token) => token.slice(5, 35)).join('')).size, 62)
  })

  it('is refused with any one character changed, lost, added or swapped', () => {
    const token = newToken()
    for (let index = 0; index < token.length; index++) {
      const other = token[index] === 'a' ? 'b' : 'a'
      assert.equal(isWellFormed(token.slice(0, index) + other + token.slice(index + 1)), false)
      assert.equal(isWellFormed(token.slice(0, index) + token.slice(index + 1)), false)
      assert.equal(isWellFormed(`${token.slice(0, index)}a${token.slice(index)}`), false)
      const [one, two] = token.slice(index, index + 2)
      if (two === undefined || one === two) continue
      assert.equal(isWellFormed(token.slice(0, index) + two + one + token.slice(index + 2)), false)
    }
  })

  it('is stored as SHA-256', () => {
    const expected = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
    assert.equal(hashToken('abc').toString('hex'), expected)
  })

  it('has an id that reveals no part of it', () => {
    assert.match(newTokenId(), /^tok_[0-9A-Za-z]{12}$/)
  })
})
