import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Failure } from '../../src/contract/errors.ts'
import { readMembers } from '../../src/json/members.ts'
import { anyCharacter } from '../support/characters.ts'
import { isAccepted, parseNatively, toFound } from './oracle.ts'
import { text } from './texts.ts'

const names = ['id', 'name', 'tag']
const numRuns = 1_500

/** The members that were read, or the failure. */
function outcomeOf(json: string) {
  try {
    return readMembers(json, names)
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

describe('the JSON reader', () => {
  it('accepts what JSON.parse accepts, except duplicates and deep nesting', () => {
    const seen = { accepted: 0, refused: 0, different: 0 }
    fc.assert(
      fc.property(text, (json) => {
        const parsed = parseNatively(json)
        const outcome = outcomeOf(json)
        const number = outcome instanceof Failure ? outcome.number : undefined
        if (parsed === undefined || !isAccepted(json, parsed)) {
          assert.equal(number, 40001)
          seen[parsed === undefined ? 'refused' : 'different']++
        } else {
          assert.equal(number, isObject(parsed.value) ? undefined : 40003)
          seen.accepted++
        }
      }),
      { numRuns },
    )
    // The texts are of use only if many of them fall on each side.
    for (const [kind, count] of Object.entries(seen))
      assert.ok(count > numRuns / 60, `${kind}: ${count}`)
  })

  it('reads the members that it is asked for as JSON.parse does, with exact integers', () => {
    let found = 0
    fc.assert(
      fc.property(text, (json) => {
        const parsed = parseNatively(json)
        const outcome = outcomeOf(json)
        if (parsed === undefined || outcome instanceof Failure) return
        const expected = names
          .map((name) => [name, toFound(parsed, name)] as const)
          .filter(([, value]) => value !== undefined)
        assert.deepEqual(outcome, Object.fromEntries(expected))
        found += expected.length
      }),
      { numRuns },
    )
    assert.ok(found > numRuns / 20, `${found} members`)
  })

  it('says in a short, printable sentence what is wrong', () => {
    fc.assert(
      fc.property(fc.oneof(text, fc.string({ unit: anyCharacter })), (json) => {
        const outcome = outcomeOf(json)
        if (!(outcome instanceof Failure)) return
        assert.match(outcome.message, /^(Invalid JSON: .*at (line \d+, )?column \d+|A JSON .*)\.$/s)
        assert.ok(outcome.message.length < 400 && outcome.message.isWellFormed())
        assert.doesNotMatch(outcome.message, /[\n\r]/)
      }),
      { numRuns },
    )
  })

  it('tells 100,000 names apart', () => {
    const members = Array.from({ length: 100_000 }, (_, index) => `"-${index}":0`)
    assert.deepEqual(readMembers(`{${members.join(',')}}`, names), {})
    const again = `{${members.join(',')},"-99999":0}`
    assert.throws(() => readMembers(again, names), /duplicate member "-99999"/)
  })

  it('tells the names of an object from those of objects before and around it', () => {
    const toMembers = (count: number) => Array.from({ length: count }, (_, index) => `"${index}":0`)
    const objects = [3, 100, 3, 9, 1_000, 100].map((count) => `{${toMembers(count).join(',')}}`)
    const nested = objects.map((object) => object.replace('0}', `[${objects}]}`))
    assert.deepEqual(readMembers(`{"a":[${nested}]}`, names), {})
    for (const count of [3, 8, 9, 100, 1_000]) {
      const again = `{${toMembers(count).join(',')},"\\u0030":0}`
      const json = `{"a":[${objects},{"b":[${objects}],"c":${again}}]}`
      assert.throws(() => readMembers(json, names), /duplicate member "0" at column \d+/)
    }
  })

  it('ignores __proto__ and the names of other inherited members', () => {
    const json = '{"__proto__":{"id":1},"constructor":1,"hasOwnProperty":2,"name":"x"}'
    const members = readMembers(json, names)
    assert.deepEqual(Object.keys(members), ['name'])
    assert.equal(members.id, undefined)
  })
})

/** A text, and what is said of it. */
const refusals: [json: string, message: string][] = [
  ['', 'expected a value, but the text ends at column 1'],
  ['{"id":1,', 'expected a member name in double quotes, but the text ends at column 9'],
  ['{"id":1,}', 'expected a member name in double quotes, but found "}" at column 9'],
  ["{'id':1}", 'expected a member name in double quotes or "}", but found "\'" at column 2'],
  ['{"id" 1}', 'expected ":", but found "1" at column 7'],
  ['{"id":1 "name":"x"}', 'expected "," or "}", but found "\\"" at column 9'],
  ['{"id":01}', 'expected "," or "}", but found "1" at column 8'],
  ['{"id":-}', 'expected a digit, but found "}" at column 8'],
  ['{"id":1.}', 'expected a digit, but found "}" at column 9'],
  ['{"id":NaN}', 'expected a value, but found "N" at column 7'],
  ['{"a":[1 2]}', 'expected "," or "]", but found "2" at column 9'],
  ['{"id":1}{', 'expected the end of the text, but found "{" at column 9'],
  ['{"id":1}\0', 'expected the end of the text, but found U+0000 at column 9'],
  ['\ufeff{}', 'expected a value, but found a byte order mark at column 1'],
  ['{\u00a0}', 'expected a member name in double quotes or "}", but found U+00A0 at column 2'],
  ['[\u{1f331}]', 'expected a value, but found "\u{1f331}" at column 2'],
  [
    '{\n  "id": 1,\n  x\n}',
    'expected a member name in double quotes, but found "x" at line 3, column 3',
  ],
  ['{"name":"x', 'expected the closing quote of a string, but the text ends at column 11'],
  ['{"name":"a\nb"}', 'unescaped control character in a string at column 11'],
  ['{"name":"\\x41"}', 'expected one of "\\/bfnrtu after a backslash, but found "x" at column 11'],
  ['{"name":"\\u12"}', 'expected four hexadecimal digits, but found "\\"" at column 14'],
  ['{"id":1,"i\\u0064":1}', 'duplicate member "id" at column 9'],
  ['{"a":[{"\\n":1,"\\u000a":2}]}', 'duplicate member "\\n" at column 15'],
  [
    `{"${'k'.repeat(50)}":1,"${'k'.repeat(50)}":1}`,
    `duplicate member "${'k'.repeat(40)}…" at column 57`,
  ],
  ['['.repeat(33), 'nesting deeper than 32 levels at column 33'],
]

describe('a text that is not JSON', () => {
  for (const [json, message] of refusals) {
    it(`is refused: ${JSON.stringify(json.slice(0, 30))}`, () => {
      const outcome = outcomeOf(json)
      assert.ok(outcome instanceof Failure)
      assert.equal(outcome.number, 40001)
      assert.equal(outcome.message, `Invalid JSON: ${message}.`)
    })
  }
})
