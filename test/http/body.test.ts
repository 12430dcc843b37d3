import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Failure } from '../../src/contract/errors.ts'
import { decodeBody } from '../../src/http/body.ts'

const missing = new Failure(40002, 'The body is missing: send a JSON object.')
const notUtf8 = new Failure(40001, 'Invalid JSON: the body is not UTF-8.')

describe('the bytes of a body', () => {
  it('are decoded as UTF-8, a byte order mark included', () => {
    const text = '\ufeff{"name":"Fougère 🌿 \ufffd"}'
    assert.equal(decodeBody(Buffer.from(text)), text)
  })

  for (const blank of ['', ' ', '\r\n\t ']) {
    it(`are missing if they are blank: ${JSON.stringify(blank)}`, () => {
      assert.throws(() => decodeBody(Buffer.from(blank)), missing)
    })
  }

  for (const bytes of ['ff', '22c0af22', '22eda08022', '22f0908022', '7b00c3']) {
    it(`are refused if they are not UTF-8: ${bytes}`, () => {
      assert.throws(() => decodeBody(Buffer.from(bytes, 'hex')), notUtf8)
    })
  }
})
