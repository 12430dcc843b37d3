import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { StoredPlant } from '../../client/index.ts'
import { parse, toNewPlantJson } from '../../client/json.ts'
import { anyCharacter } from '../support/characters.ts'

type Plants = StoredPlant[]
const toPlants = (value: Plants) => value

const plant = fc.record(
  {
    id: fc.oneof(
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      // Numbers that lose their last digit.
      fc.bigInt({ min: 0n, max: 2n ** 54n }).map((half) => 2n ** 55n + 2n * half + 1n),
    ),
    name: fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.stringMatching(/^[{},:"\\id0-9 ]{0,20}$/),
      fc.constantFrom('{"id":9007199254740993}', ',"id":1234567890123456,', '\\', '"id"'),
    ),
    tag: fc.string(),
  },
  { requiredKeys: ['id', 'name'], noNullPrototype: true },
)

describe('the JSON of the client', () => {
  it('is read exactly, whatever the plants and the spaces between them', () => {
    const spaces = fc.constantFrom('', ' ', '\n\t')
    fc.assert(
      fc.property(fc.array(plant), spaces, fc.nat(6_000), (plants, space, padding) => {
        const texts = plants.map((one) => space + toNewPlantJson(one))
        // A name that looks like a member is escaped, so the replacement never meets one.
        const text = `[${texts.join(',')}]${' '.repeat(padding)}`.replaceAll(
          '"id":',
          `"id"${space}:${space}`,
        )
        assert.deepEqual(parse(text, toPlants), plants)
      }),
    )
  })

  it('keeps an id as it is that is absent or no integer, beside any other', () => {
    const text = '[{"name":"x"},{"id":1.5},{"id":9007199254740993}]'
    const expected = [{ name: 'x' }, { id: 1.5 }, { id: 9007199254740993n }]
    assert.deepEqual(parse(text, toPlants), expected)
  })
})
