import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Failure } from '../../src/contract/errors.ts'
import { limits } from '../../src/contract/limits.ts'
import { readMembers } from '../../src/json/plant-json.ts'
import { anyCharacter } from '../support/characters.ts'
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

function isSmallInteger(value: unknown): boolean {
  return Number.isInteger(value) && Math.abs(value as number) < 2 ** 40
}

/** What `JSON.parse` makes of a text; undefined if it refuses. */
function parseNatively(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Whether we accept what `JSON.parse` accepts: duplicates and deep nesting are where we differ. */
function isAccepted(text: string, value: unknown): boolean {
  return countWrittenMembers(text) === countMembers(value) && toDepth(value) <= limits.jsonDepth
}

/** Valid JSON has as many members as colons outside its strings. */
function countWrittenMembers(text: string): number {
  return text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1
}

function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const own = Array.isArray(value) ? 0 : Object.keys(value).length
  return Object.values(value).reduce((sum: number, inner) => sum + countMembers(inner), own)
}

function toDepth(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(toDepth))
}

describe('the JSON reader', () => {
  it('accepts what JSON.parse accepts, except duplicates and deep nesting', () => {
    const seen = { accepted: 0, refused: 0, different: 0 }
    fc.assert(
      fc.property(text, (json) => {
        const parsed = parseNatively(json)
        const outcome = outcomeOf(json)
        const number = outcome instanceof Failure ? outcome.number : undefined
        if (parsed === undefined || !isAccepted(json, parsed.value)) {
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

  it('reads the members that it is asked for as JSON.parse does', () => {
    let found = 0
    fc.assert(
      fc.property(text, (json) => {
        const parsed = parseNatively(json)
        const outcome = outcomeOf(json)
        if (parsed === undefined || outcome instanceof Failure) return
        const object = parsed.value as Record<string, unknown>
        const present = names.filter((name) => Object.hasOwn(object, name))
        assert.deepEqual(Object.keys(outcome).sort(), present)
        for (const [name, member] of Object.entries(outcome)) {
          const expected = object[name]
          if (typeof member === 'string') assert.equal(member, expected)
          // Digits beyond 2^53 have tests with the values.
          else if (typeof member === 'bigint') assert.equal(Number(member), expected || 0)
          // A large fraction may round to an integer.
          else assert.ok(typeof expected !== 'string' && !isSmallInteger(expected))
          found++
        }
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

  it('ignores __proto__ and the names of other inherited members', () => {
    const json = '{"__proto__":{"id":1},"constructor":1,"hasOwnProperty":2,"name":"x"}'
    const members = readMembers(json, names)
    assert.deepEqual(Object.keys(members), ['name'])
    assert.equal(members.id, undefined)
  })
})

const wrongString = 'unclosed string, wrong escape or control character in the string at column 9'
/** A text, and what is said of it. */
const refusals: [json: string, message: string][] = [
  ['', 'expected a value, but the text ends at column 1'],
  ['{"id":1,', 'expected a member name in double quotes, but the text ends at column 9'],
  ['{"id":1,}', 'expected a member name in double quotes, but found "}" at column 9'],
  ["{'id':1}", 'expected a member name in double quotes or "}", but found "\'" at column 2'],
  ['{"id" 1}', 'expected ":", but found "1" at column 7'],
  ['{"id":1 "name":"x"}', 'expected "," or "}", but found "\\"" at column 9'],
  ['{"id":01}', 'expected "," or "}", but found "1" at column 8'],
  ['{"id":-}', 'expected a value, but found "-" at column 7'],
  ['{"id":1.}', 'expected "," or "}", but found "." at column 8'],
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
  ['{"name":"x', wrongString],
  ['{"name":"a\nb"}', wrongString],
  ['{"name":"\\x41"}', wrongString],
  ['{"name":"\\u12"}', wrongString],
  ['{"id":1,"i\\u0064":1}', 'duplicate member "id" at column 9'],
  ['{"a":[{"\\n":1,"\\u000a":2}]}', 'duplicate member "\\n" at column 15'],
  [
    `{"${'k'.repeat(50)}":1,"${'k'.repeat(50)}":1}`,
    `duplicate member "${'k'.repeat(40)}…" at column 57`,
  ],
  ['['.repeat(33), 'nesting deeper than 32 levels at column 33'],
]

for (const [json, message] of refusals) {
  it(`a text that is not JSON is refused: ${JSON.stringify(json.slice(0, 30))}`, () => {
    const outcome = outcomeOf(json)
    assert.ok(outcome instanceof Failure)
    assert.equal(outcome.number, 40001)
    assert.equal(outcome.message, `Invalid JSON: ${message}.`)
  })
}
