import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { newColumns, note, type Reading, readText, toText } from '../../src/store/journal-text.ts'
import { toPlant } from '../../src/store/store.ts'

const types = { c: 'plant.created', r: 'plant.replaced', d: 'plant.deleted' } as const

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
/** Ids of a JavaScript number, and those next to them that no number can hold. */
const aroundSafe = fc
  .tuple(fc.constantFrom(-1n, 1n), fc.bigInt({ min: -3n, max: 3n }))
  .map(([sign, distance]) => sign * 2n ** 53n + distance)
const id = fc.oneof(fc.bigInt({ min: -9n, max: 9n }), int64, aroundSafe)
const name = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 4 }),
  fc.constantFrom('"],"g":["', '],"n":[', ',"i":[', '\\', '\\"', '",', 'null', ''),
)
/** Few, so that many rows have the same for all changes, or for the first ones. */
const tag = fc.constantFrom(undefined, undefined, 'null', 'a"],"g":[', ',')
const tokenId = fc.constantFrom('a', 'a', 'b', undefined)
const kind = fc.constantFrom('c', 'c', 'c', 'r', 'd')
const change = fc.record({ kind, tokenId, id, name, tag })
const changes = fc.array(change, { minLength: 1, maxLength: 9 })

interface Noted {
  readonly kind: keyof typeof types
  readonly tokenId: string | undefined
  readonly id: bigint
  readonly name: string
  readonly tag: string | undefined
}

function toChangesText(changes: readonly Noted[]): string {
  const columns = newColumns()
  for (const { kind, tokenId, id, name, tag } of changes) {
    note(columns, kind, tokenId, tag === undefined ? { id, name } : { id, name, tag })
  }
  return toText(columns)
}

describe('the text of a row', () => {
  it('says every change to the last digit, after any of its places', () => {
    fc.assert(
      fc.property(changes, fc.nat(8), (noted, done) => {
        const reading: Reading = { events: [], limit: 100, bytes: 0 }
        const place = { life: 'abcdefabcdef', seq: 1, nonce: 1, done }
        assert.ok(readText(toChangesText(noted), 7, place, reading))
        const read = reading.events.map((event) => {
          const { id, name, tag } = toPlant(event)
          return { type: event.type, at: event.at, tokenId: event.tokenId, id, name, tag }
        })
        assert.deepEqual(
          read,
          noted.slice(done).map(({ kind, ...rest }) => ({ type: types[kind], at: 7, ...rest })),
        )
      }),
      { numRuns: 1_000 },
    )
  })

  it('has a tag that all changes share once, and counts it for each of them on a page', () => {
    const tag = 't'.repeat(1_000)
    const one: Noted = { kind: 'c', tokenId: 'a', id: 1n, name: 'n', tag }
    const text = toChangesText(Array.from({ length: 50 }, () => one))
    assert.equal(text.split(tag).length - 1, 1)
    const reading: Reading = { events: [], limit: 100, bytes: 0 }
    assert.ok(readText(text, 7, { life: '', seq: 1, nonce: 1, done: 0 }, reading))
    assert.equal(reading.events.length, 50)
    assert.ok(reading.bytes > 50 * tag.length, String(reading.bytes))
  })
})
