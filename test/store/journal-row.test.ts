import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { limits } from '../../src/contract/limits.ts'
import { toLine, toPage, toPlant, toPlantId, toRow } from '../../src/journal/row.ts'

const types = { c: 'plant.created', r: 'plant.replaced', d: 'plant.deleted' } as const

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
/** Ids of a JavaScript number, and those next to them that no number can hold. */
const aroundSafe = fc
  .tuple(fc.constantFrom(-1n, 1n), fc.bigInt({ min: -3n, max: 3n }))
  .map(([sign, distance]) => sign * 2n ** 53n + distance)
const id = fc.oneof(fc.bigInt({ min: -9n, max: 9n }), int64, aroundSafe)
const name = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 4 }),
  fc.constantFrom('\t', '\n', '"\t"', '\\', '\\"', '",', 'null', ''),
)
/** Few, so that many rows have the same for all changes, or for the first ones. */
const tag = fc.constantFrom(undefined, undefined, 'null', '\t', '"')
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

function toLines(changes: readonly Noted[]): string[] {
  return changes.map(({ kind, tokenId, id, name, tag }) =>
    toLine(kind, tokenId, tag === undefined ? { id, name } : { id, name, tag }),
  )
}

const cursor = { journalId: 'abcdefabcdef', seq: 1, nonce: 1, index: 0 }

/** The page of one row after some of its changes. */
function read(changes: string, count: number, index = 0) {
  return toPage({ ...cursor, index }, [{ cursor, count, at: 7, changes }], 100)
}

describe('the text of a row', () => {
  it('says every change to the last digit, after any of its cursors', () => {
    fc.assert(
      fc.property(changes, fc.nat(8), (noted, place) => {
        const index = Math.min(place, noted.length)
        const page = read(toRow(toLines(noted)).changes, noted.length, index)
        assert.ok(page.isLast)
        const found = page.events.map((event) => {
          const { id, name, tag } = toPlant(event)
          return { type: event.type, at: event.at, tokenId: event.tokenId, id, name, tag }
        })
        const rest = noted.slice(index)
        const expected = rest.map(({ kind, ...one }) => ({ type: types[kind], at: 7, ...one }))
        assert.deepEqual(found, expected)
      }),
      { numRuns: 1_000 },
    )
  })

  it('gives a change that is larger than a page, and nothing after it', () => {
    const names = ['x'.repeat(limits.pageBytes + 1), 'small']
    const lines = names.map((name, index) => toLine('c', undefined, { id: BigInt(index), name }))
    const { events, isLast } = read(toRow(lines).changes, lines.length)
    assert.equal(isLast, false)
    assert.deepEqual(events.map(toPlantId), [0n])
  })

  it('is a line for each change, as release 1.1.0 wrote it', () => {
    const id = 2n ** 63n - 1n
    const lines = [
      toLine('c', 'tok_a', { id, name: 'Ficus\t"\n', tag: '' }),
      toLine('d', undefined, { id: -1n, name: '' }),
    ]
    const expected = 'c\ttok_a\t9223372036854775807\t"Ficus\\t\\"\\n"\t""\nd\t\t-1\t""'
    assert.equal(toRow(lines).changes, expected)
  })

  it('is refused when it is damaged', () => {
    for (const changes of ['', 'x\t\t1\t""', 'c', 'c\t\t1', '{"k":["c"]}']) {
      assert.throws(() => read(changes, 1), /damaged/)
    }
  })
})
