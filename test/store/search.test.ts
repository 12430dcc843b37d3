import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { buildMatcher, searchPlants } from '../../src/store/lists.ts'
import type { Store } from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'
import { lowerLimit } from '../support/limits.ts'
import { storeMany } from '../support/stores.ts'
import { countTurns } from '../support/turns.ts'

/** Few letters, so that texts nearly match; among them those whose case is unusual. */
const letter = fc.constantFrom(...'aabbABΣσςİıiIßẞÉé木😀𐐀𐐨*?[]%_\\. ')
const text = fc.oneof(
  fc.string({ unit: letter, maxLength: 12 }),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
)
const sought = fc.oneof(fc.string({ unit: letter, maxLength: 4 }), text)

function contains(name: string, part: string): boolean {
  return toUpper(name).includes(toUpper(part))
}

/** Upper case does not depend on neighbours, so each character is converted alone. */
function toUpper(name: string): string {
  return [...name].map((character) => character.toUpperCase()).join('')
}

describe('the search for a text in names', () => {
  it('finds what a comparison character by character finds', () => {
    fc.assert(
      fc.property(text, sought, (name, part) => {
        assert.equal(buildMatcher(part)(name), contains(name, part))
      }),
      { numRuns: 5_000 },
    )
  })

  it('takes every character alike, whatever is beside it', () => {
    for (let code = 0; code <= 0x10ffff; code++) {
      if (code >= 0xd800 && code <= 0xdfff) continue
      const character = String.fromCodePoint(code)
      const name = `A${character}B`
      if (character.toUpperCase() === character && name.toUpperCase() === name) continue
      assert.ok(buildMatcher(toUpper(name))(name), `U+${code.toString(16)}`)
      assert.ok(buildMatcher(`${character}b`)(name), `U+${code.toString(16)}`)
    }
  })

  it('falls back within a text that repeats itself', () => {
    assert.ok(buildMatcher('aabaaab')('AABAABAAAB'))
    assert.ok(!buildMatcher(`${'a'.repeat(999)}c`)('a'.repeat(100_000)))
  })
})

for (const engine of engines) {
  describe(`a search by name on ${engine.name}`, () => {
    it('examines few plants in a turn without time, however many searches there are', async (t) => {
      lowerLimit(t, 'turnMs', 0)
      const store = await engine.open(await engine.newUrl())
      await storeMany(store, 0, 2_000)
      let pieces = 0
      const counted: Store = {
        ...store,
        listPlants(query) {
          assert.ok(query.limit <= 256, `${query.limit} plants in a piece`)
          pieces++
          return store.listPlants(query)
        },
      }
      const turns = countTurns()
      const search = { name: 'y', limit: 1, tag: undefined, after: undefined }
      const count = 16
      await Promise.all(Array.from({ length: count }, () => searchPlants(counted, search)))
      assert.equal(pieces, count * Math.ceil(2_000 / 256))
      // Each begins its first piece at once.
      assert.ok(pieces - count <= turns(), `${pieces} pieces in ${turns()} turns`)
    })
  })
}
