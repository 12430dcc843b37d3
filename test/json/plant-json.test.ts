import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Failure } from '../../src/contract/errors.ts'
import { NewPlant, Plant } from '../../src/contract/shapes.ts'
import {
  buildShapeReader,
  plainNames,
  readMembers,
  readPlainPlant,
} from '../../src/json/plant-json.ts'
import { anyCharacter } from '../support/characters.ts'
import { number, space, string } from './texts.ts'

const digits = fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map(String)
const id = fc.oneof({ weight: 3, arbitrary: digits }, { weight: 1, arbitrary: number })
const raw = fc.string({ unit: anyCharacter }).map((value) => `"${value}"`)
const quoted = fc.oneof({ weight: 3, arbitrary: raw }, { weight: 1, arbitrary: string })
const spaces = fc.array(space, { minLength: 10, maxLength: 10 })
const plant = fc
  .tuple(id, quoted, fc.option(quoted), spaces)
  .map(([key, name, tag, [a, b, c, d, e, f, g, h, i, j]]) => {
    const end = tag === null ? '' : `,${g}"tag"${h}:${i}${tag}`
    return `${a}{${b}"id"${c}:${d}${key}${e},${f}"name"${c}:${d}${name}${e}${end}${j}}${a}`
  })

const readNewPlant = buildShapeReader(NewPlant)
const outside =
  'The member "id" must be an integer from -9223372036854775808 to 9223372036854775807, but is too'
const example = 'Send {"id": 42, "name": "Monstera"}, for example.'
const storable = 'a string without NUL characters and without lone surrogates'

const plants: [json: string, plant: object][] = [
  ['{"id":1,"name":"Fern"}', { id: 1n, name: 'Fern' }],
  ['{"tag":"","name":"","id":-0}', { id: 0n, name: '', tag: '' }],
  ['{"id":9.223372036854775807e18,"name":"x"}', { id: 2n ** 63n - 1n, name: 'x' }],
  ['{"i\\u0064":1e3,"name":"\\ud83c\\udf31\\n"}', { id: 1000n, name: '\u{1f331}\n' }],
  ['{"more":[{"id":2}],"id":1,"name":"x","__proto__":{"tag":"y"}}', { id: 1n, name: 'x' }],
]
for (const [json, plant] of plants) {
  it(`a plant is read from ${json}`, () => assert.deepEqual(readNewPlant(json), plant))
}

const refusals: [json: string, message: string][] = [
  ['[]', `A JSON object is expected, but this is an array. ${example}`],
  ['1.5', `A JSON object is expected, but this is a number. ${example}`],
  [' null ', `A JSON object is expected, but this is null. ${example}`],
  ['{}', 'The member "id" is missing.'],
  ['{"id":"1"}', 'The member "name" is missing.'],
  [
    '{"id":"1","name":"x"}',
    'The member "id" must be an integer, but is a string: write it without quotes.',
  ],
  ['{"id":null,"name":"x"}', 'The member "id" must be an integer, but is null.'],
  ['{"id":{},"name":"x"}', 'The member "id" must be an integer, but is an object.'],
  ['{"id":1.5,"name":"x"}', 'The member "id" must be an integer, but is a fraction.'],
  ['{"id":1e-999999999,"name":"x"}', 'The member "id" must be an integer, but is a fraction.'],
  ['{"id":9223372036854775808,"name":"x"}', `${outside} large.`],
  ['{"id":-9223372036854775809,"name":"x"}', `${outside} small.`],
  ['{"id":1e999999999,"name":"x"}', `${outside} large.`],
  ['{"id":1,"name":1}', 'The member "name" must be a string, but is an integer.'],
  ['{"id":1,"name":1.5}', 'The member "name" must be a string, but is a number.'],
  [
    '{"id":1,"name":"x","tag":null}',
    'The member "tag" must be a string, but is null: leave it out if there is none.',
  ],
  ['{"id":1,"name":"\\u0000"}', `The member "name" must be ${storable}.`],
  ['{"id":1,"name":"x","tag":"\\ud800"}', `The member "tag" must be ${storable}.`],
]
for (const [json, message] of refusals) {
  it(`JSON of another shape is refused: ${json}`, () => {
    assert.throws(() => readNewPlant(json), new Failure(40003, message))
  })
}

describe('a member that the shape does not name', () => {
  it('is left out', () => {
    assert.deepEqual(buildShapeReader(Plant)('{"id":1,"name":"x"}'), { name: 'x' })
  })

  it('is kept unchecked if the caller asks for it', () => {
    const readPlant = buildShapeReader(Plant, ['id'])
    assert.deepEqual(readPlant('{"id":1,"name":"x"}'), { id: 1n, name: 'x' })
    assert.deepEqual(readPlant('{"id":"1","name":"x"}'), { id: '1', name: 'x' })
    assert.deepEqual(readPlant('{"name":"x"}'), { name: 'x' })
  })
})

describe('the fast path for plain plants', () => {
  it('reads a plant as the scanner does, or leaves it to the scanner', () => {
    let plain = 0
    fc.assert(
      fc.property(plant, (json) => {
        const found = readPlainPlant(json)
        if (found === undefined) return
        assert.deepEqual(found, readMembers(json, plainNames))
        plain++
      }),
      { numRuns: 1_500 },
    )
    assert.ok(plain > 300, `${plain} plants were plain`)
  })

  it('leaves every character that JSON escapes to the scanner', () => {
    const controls = Array.from({ length: 0x20 }, (_, code) => String.fromCharCode(code))
    for (const character of [...controls, '"', '\\']) {
      for (const members of [`"name":"${character}"`, `"name":"","tag":"${character}"`]) {
        assert.equal(readPlainPlant(`{"id":1,${members}}`), undefined, JSON.stringify(character))
      }
    }
  })

  it('takes the plants that clients usually send', () => {
    for (const json of [
      '{"id":1,"name":"Fern"}',
      '{"id":-9223372036854775808,"name":"Fern","tag":"indoor"}',
      '{\n  "id": 0,\n  "name": "Fougère 🌿",\n  "tag": ""\n}\n',
    ]) {
      assert.notEqual(readPlainPlant(json), undefined, json)
    }
  })
})
