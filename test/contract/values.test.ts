import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type NotInt64, toInt64, toPathId } from '../../src/contract/values.ts'

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })

describe('an int64', () => {
  it('is read digit by digit, in JSON and in a path', () => {
    fc.assert(
      fc.property(int64, (value) => {
        assert.equal(toInt64(String(value)), value)
        assert.equal(toPathId(String(value)), value)
      }),
    )
  })

  it('is the same in every notation', () => {
    fc.assert(
      fc.property(int64, fc.integer({ min: 0, max: 40 }), (value, places) => {
        const digits = String(value)
        assert.equal(toInt64(`${digits}.${'0'.repeat(places + 1)}`), value)
        assert.equal(toInt64(`${digits}${'0'.repeat(places)}e-${places}`), value)
        const [, sign, first, rest] = /^(-?)(\d)(\d*)$/.exec(digits) ?? []
        assert.equal(toInt64(`${sign}${first}.${rest}0E+${rest?.length}`), value)
      }),
    )
  })

  it('is zero whatever the exponent of zero', () => {
    for (const zero of ['0', '-0', '0.0', '0e999999999', '-0.000E-99999999999999999999']) {
      assert.equal(toInt64(zero), 0n, zero)
    }
  })

  const refused: [reason: NotInt64, numbers: string[]][] = [
    [
      'too large',
      ['9223372036854775808', '1e19', '1e999999999', '1E99999999999999999999', '9.3e18'],
    ],
    ['too small', ['-9223372036854775809', '-1e19', '-1e999999999']],
    [
      'a fraction',
      ['1.5', '1e-1', '123e-4', '1e-999999999', '9223372036854775807.1', '92233720368547758071e-1'],
    ],
  ]
  for (const [reason, numbers] of refused) {
    it(`is no number that is ${reason}, which is told without expanding an exponent`, () => {
      for (const number of numbers) assert.equal(toInt64(number), reason, number)
    })
  }
})
