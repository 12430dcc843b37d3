import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Failure } from '../../src/contract/errors.ts'
import { readMembers } from '../../src/json/members.ts'
import { plainNames, readPlainPlant } from '../../src/json/plain-plant.ts'
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

  it('takes the plants that clients usually send', () => {
    for (const json of [
      '{"id":1,"name":"Fern"}',
      '{"id":-9223372036854775808,"name":"Fern","tag":"indoor"}',
      '{\n  "id": 0,\n  "name": "Fougère 🌿",\n  "tag": ""\n}\n',
    ]) {
      assert.notEqual(readPlainPlant(json), undefined, json)
    }
  })

  it('leaves an id beyond int64 to the scanner', () => {
    const json = '{"id":9223372036854775808,"name":"Fern"}'
    assert.equal(readPlainPlant(json), undefined)
    assert.ok(!(readMembers(json, plainNames) instanceof Failure))
  })
})
