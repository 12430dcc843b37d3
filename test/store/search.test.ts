import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { limits } from '../../src/contract/limits.ts'
import { buildMatcher, type Findings, searchPlants } from '../../src/store/lists.ts'
import type { Store } from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'
import { lowerLimit } from '../support/limits.ts'
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

  it('finds every part of a name', () => {
    fc.assert(
      fc.property(text, fc.nat(12), fc.nat(12), (name, start, end) => {
        const part = [...name].slice(start, end).join('')
        assert.ok(buildMatcher(part)(name))
        assert.ok(buildMatcher(toUpper(part))(name))
      }),
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

  it('finds a sigma in a capital word, at its end and within', () => {
    for (const name of ['ΟΔΟΣ', 'οδος', 'ΟΔΟΣΑ', 'οδοσα']) assert.ok(buildMatcher('οδος')(name))
  })

  it('finds the same letters in upper and lower case, where one becomes two', () => {
    for (const text of ['SÜSSKIRSCHE', 'süßkirsche', 'süss', 'süß']) {
      assert.ok(buildMatcher(text)('Süßkirsche'), text)
    }
    assert.ok(buildMatcher('ß')('SÜSSKIRSCHE'))
  })

  it('falls back within a text that repeats itself', () => {
    assert.ok(buildMatcher('aabaaab')('AABAABAAAB'))
    assert.ok(!buildMatcher(`${'a'.repeat(999)}c`)('a'.repeat(100_000)))
  })
})

for (const engine of engines) {
  describe(`a search by name on ${engine.name}`, () => {
    it('says that plants follow those that it has examined, even if only one does', async () => {
      const store = await engine.open(await engine.newUrl())
      const { examinedPlants } = limits
      const plants = Array.from({ length: examinedPlants }, (_, index) => ({
        id: BigInt(index),
        name: 'x',
      }))
      await store.importPlants(plants, 'keep')
      const search = { name: 'y', order: 'asc' as const, limit: 1, tag: undefined }
      const whole = await searchPlants(store, { ...search, after: undefined })
      assert.deepEqual(whole, { plants: [], next: undefined })
      const last = { id: BigInt(examinedPlants), name: 'y' }
      await store.createPlant(last)
      const { next } = await searchPlants(store, { ...search, after: undefined })
      assert.equal(next, last.id - 1n)
      const found = await searchPlants(store, { ...search, after: next })
      assert.deepEqual(
        found.plants.map(({ id }) => id),
        [last.id],
      )
    })

    it('examines few plants in a turn without time, however many searches there are', async (t) => {
      lowerLimit(t, 'turnMs', 0)
      const store = await engine.open(await engine.newUrl())
      const plants = Array.from({ length: 2_000 }, (_, id) => ({ id: BigInt(id), name: 'x' }))
      await store.importPlants(plants, 'keep')
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
      assert.equal(pieces, count * Math.ceil(plants.length / 256))
      // Each begins its first piece at once.
      assert.ok(pieces - count <= turns(), `${pieces} pieces in ${turns()} turns`)
    })

    it('goes on after large plants, of which it examines only a few at a time', async () => {
      const store = await engine.open(await engine.newUrl())
      const large = 'x'.repeat(limits.pageBytes / 4)
      for (let id = 1n; id <= 9n; id++) await store.createPlant({ id, name: large })
      await store.createPlant({ id: 10n, name: 'y' })
      const found: bigint[] = []
      for (let after: bigint | undefined = 0n; after !== undefined; ) {
        const search = { name: 'y', order: 'asc' as const, limit: 1, tag: undefined, after }
        const page: Findings = await searchPlants(store, search)
        found.push(...page.plants.map(({ id }) => id))
        after = page.next
      }
      assert.deepEqual(found, [10n])
    })

    it('finds the same plants as a plain filter, in both orders', async () => {
      const store = await engine.open(await engine.newUrl())
      const names = fc.sample(text, { numRuns: 300, seed: 1 })
      const plants = names.map((name, index) => ({ id: BigInt(index), name }))
      await store.importPlants(plants, 'keep')
      const query = fc.record({
        name: sought,
        order: fc.constantFrom('asc' as const, 'desc' as const),
        limit: fc.integer({ min: 1, max: 50 }),
      })
      await fc.assert(
        fc.asyncProperty(query, async ({ name, order, limit }) => {
          const found: bigint[] = []
          let after: bigint | undefined
          do {
            const page = await searchPlants(store, { name, order, limit, after, tag: undefined })
            assert.ok(page.plants.length <= limit)
            found.push(...page.plants.map(({ id }) => id))
            after = page.next
          } while (after !== undefined)
          const expected = plants.filter((plant) => contains(plant.name, name)).map(({ id }) => id)
          assert.deepEqual(found, order === 'asc' ? expected : expected.toReversed())
        }),
      )
    })
  })
}
