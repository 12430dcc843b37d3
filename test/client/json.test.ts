import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { StoredPlant } from '../../client/index.ts'
import { parse, toNewPlantJson } from '../../client/json.ts'
import { anyCharacter } from '../support/characters.ts'

type Plants = StoredPlant[]
const toPlants = (value: Plants) => value

/** JSON.parse as it was before it passed on the source text of numbers. */
function withoutSource<Result>(run: () => Result): Result {
  const { parse: original } = JSON
  JSON.parse = (text, reviver) =>
    original(text, reviver && ((key: string, value: unknown) => reviver(key, value)))
  try {
    return run()
  } finally {
    JSON.parse = original
  }
}

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
  for (const [title, run] of [
    ['with source text access', (parsing: () => void) => parsing()],
    ['without it', withoutSource],
  ] as const) {
    it(`is read exactly ${title}, whatever the plants and the spaces between them`, () => {
      const spaces = fc.constantFrom('', ' ', '\n\t')
      fc.assert(
        fc.property(fc.array(plant), spaces, fc.nat(6_000), (plants, space, padding) => {
          const texts = plants.map((one) => space + toNewPlantJson(one))
          const text = `[${texts.join(',')}]${' '.repeat(padding)}`.replaceAll(
            '"id":',
            `"id"${space}:${space}`,
          )
          // A name that looks like a member is escaped, so the replacement above never meets one.
          run(() => assert.deepEqual(parse(text, toPlants), plants))
        }),
      )
    })
  }

  it('keeps an id that is absent absent, beside any other', () => {
    const others: [string, object[]][] = [
      ['', []],
      [',{"id":1}', [{ id: 1n }]],
      [',{"id":9007199254740993}', [{ id: 9007199254740993n }]],
    ]
    for (const [other, parsed] of others) {
      for (const padding of ['', ' '.repeat(5_000)]) {
        const text = `[{"name":"x"}${other}]${padding}`
        assert.deepEqual(parse(text, toPlants), [{ name: 'x' }, ...parsed])
      }
    }
  })

  it('keeps an id that is no integer as it is, or refuses it', () => {
    assert.deepEqual(parse('[{"id":"7"}]', toPlants), [{ id: '7' }])
    assert.throws(() => parse('[{"id":1.5}]', toPlants))
  })
})
