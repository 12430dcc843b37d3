import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Failure } from '../../src/contract/errors.ts'
import { NewPlant, Plant } from '../../src/contract/shapes.ts'
import { buildShapeReader } from '../../src/json/shape.ts'

const readNewPlant = buildShapeReader(NewPlant)
const int64 = 'an integer from -9223372036854775808 to 9223372036854775807'
const example = 'Send {"id": 42, "name": "Monstera"}, for example.'
const storable = 'a string without NUL characters and without lone surrogates'

describe('a plant', () => {
  const plants: [json: string, plant: object][] = [
    ['{"id":1,"name":"Fern"}', { id: 1n, name: 'Fern' }],
    ['{"tag":"","name":"","id":-0}', { id: 0n, name: '', tag: '' }],
    ['{"id":9.223372036854775807e18,"name":"x"}', { id: 2n ** 63n - 1n, name: 'x' }],
    ['{"i\\u0064":1e3,"name":"\\ud83c\\udf31\\n"}', { id: 1000n, name: '\u{1f331}\n' }],
    ['{"more":[{"id":2}],"id":1,"name":"x","__proto__":{"tag":"y"}}', { id: 1n, name: 'x' }],
  ]
  for (const [json, plant] of plants) {
    it(`is read from ${json}`, () => assert.deepEqual(readNewPlant(json), plant))
  }
})

describe('JSON of another shape', () => {
  const refusals: [json: string, message: string][] = [
    ['[]', `A JSON object is expected, but this is an array. ${example}`],
    ['"x"', `A JSON object is expected, but this is a string. ${example}`],
    ['1', `A JSON object is expected, but this is an integer. ${example}`],
    ['1.5', `A JSON object is expected, but this is a number. ${example}`],
    ['true', `A JSON object is expected, but this is a boolean. ${example}`],
    [' null ', `A JSON object is expected, but this is null. ${example}`],
    ['{}', 'The member "id" is missing.'],
    ['{"id":"1"}', 'The member "name" is missing.'],
    [
      '{"id":"1","name":"x"}',
      'The member "id" must be an integer, but is a string: write it without quotes.',
    ],
    ['{"id":null,"name":"x"}', 'The member "id" must be an integer, but is null.'],
    ['{"id":false,"name":"x"}', 'The member "id" must be an integer, but is a boolean.'],
    ['{"id":[1],"name":"x"}', 'The member "id" must be an integer, but is an array.'],
    ['{"id":{},"name":"x"}', 'The member "id" must be an integer, but is an object.'],
    ['{"id":1.5,"name":"x"}', 'The member "id" must be an integer, but is not an integer.'],
    [
      '{"id":1e-999999999,"name":"x"}',
      'The member "id" must be an integer, but is not an integer.',
    ],
    [
      '{"id":9223372036854775808,"name":"x"}',
      `The member "id" must be ${int64}, but is too large.`,
    ],
    [
      '{"id":-9223372036854775809,"name":"x"}',
      `The member "id" must be ${int64}, but is too small.`,
    ],
    ['{"id":1e999999999,"name":"x"}', `The member "id" must be ${int64}, but is too large.`],
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
    it(`is refused: ${json}`, () => {
      assert.throws(() => readNewPlant(json), new Failure(40003, message))
    })
  }
})

describe('a control character', () => {
  it('is refused in a string, unless it is escaped', () => {
    for (let code = 0; code < 0x20; code++) {
      const character = String.fromCharCode(code)
      assert.throws(() => readNewPlant(`{"id":1,"name":"${character}"}`), /unescaped control/)
      const escaped = `{"id":1,"name":${JSON.stringify(character)}}`
      if (code > 0) assert.deepEqual(readNewPlant(escaped), { id: 1n, name: character })
    }
    assert.deepEqual(readNewPlant('{"id":1,"name":" \x7f"}'), { id: 1n, name: ' \x7f' })
  })
})

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
