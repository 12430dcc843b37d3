import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type ParameterName, parameters } from '../../src/contract/parameters.ts'
import { NewPlant } from '../../src/contract/shapes.ts'
import { isStorable } from '../../src/contract/values.ts'
import { buildParameterReader } from '../../src/http/read-request.ts'
import { anyCharacter } from '../support/characters.ts'

/** Text of the characters that lists of entity tags are made of, and of some others. */
const headerValue = fc
  .array(fc.constantFrom('"', '"a"', 'W/', ',', ' ', '\t', '*', 'a', '\x80', '"\xff!"', 'w/'), {
    maxLength: 8,
  })
  // The parser takes the white space off both ends.
  .map((parts) => parts.join('').replace(/^[ \t]+|[ \t]+$/g, ''))
const anyText = fc.string({ unit: anyCharacter, maxLength: 20 })

describe('the patterns of the document', () => {
  for (const name of ['If-Match', 'If-None-Match'] as const) {
    it(`accept the same ${name} as the service`, () => {
      fc.assert(
        fc.property(headerValue, (value) => {
          assert.equal(matches(name, value), isRead(name, value), JSON.stringify(value))
        }),
        { numRuns: 2_000, examples: [['*'], ['"a", , "b"'], [', "a" ,'], ['']] },
      )
    })
  }

  it('accept the same Idempotency-Key as the service', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), anyText), (key) => {
        assert.equal(matches('Idempotency-Key', key), isRead('Idempotency-Key', key))
      }),
    )
  })

  it('accept the same names and tags as the store', () => {
    const patterns = [NewPlant.properties.name, NewPlant.properties.tag, parameters.tag.schema]
    fc.assert(
      // JSON cannot express a lone surrogate, and neither can a pattern.
      fc.property(
        anyText.map((text) => text.toWellFormed()),
        (text) => {
          for (const { pattern } of patterns) {
            assert.equal(new RegExp(pattern, 'u').test(text), isStorable(text))
          }
        },
      ),
      { examples: [['\0'], ['a\0'], ['\n'], ['\u{10ffff}']] },
    )
  })
})

function matches(name: 'If-Match' | 'If-None-Match' | 'Idempotency-Key', value: string): boolean {
  return new RegExp(parameters[name].schema.pattern).test(value)
}

function isRead(name: ParameterName, value: string): boolean {
  try {
    buildParameterReader([name])('/', { [name.toLowerCase()]: value })
    return true
  } catch {
    return false
  }
}
