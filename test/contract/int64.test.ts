import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { toInt64, toPathId } from '../../src/contract/int64.ts'

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

  it('is the same however it is written', () => {
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

  it('has two ends', () => {
    for (const large of ['9223372036854775808', '1e19', '92233720368547758070', '1.5e400']) {
      assert.equal(toInt64(large), 'too large', large)
    }
    for (const small of ['-9223372036854775809', '-1e19', '-1e999999999']) {
      assert.equal(toInt64(small), 'too small', small)
    }
  })

  it('is zero whatever the exponent of zero', () => {
    for (const zero of ['0', '-0', '0.0', '0e999999999', '-0.000E-99999999999999999999']) {
      assert.equal(toInt64(zero), 0n, zero)
    }
  })

  it('has no fraction', () => {
    for (const fraction of [
      '1.5',
      '-1e-1',
      '123e-4',
      '9223372036854775807.1',
      '92233720368547758071e-1',
      '1e-999999999',
    ]) {
      assert.equal(toInt64(fraction), 'not an integer', fraction)
    }
  })

  it('is judged without expanding its exponent', () => {
    assert.equal(toInt64('1E999999999'), 'too large')
    assert.equal(toInt64(`1e${'9'.repeat(1_000_000)}`), 'too large')
    assert.equal(toInt64(`1e-${'9'.repeat(1_000_000)}`), 'not an integer')
    assert.equal(toInt64(`1${'0'.repeat(1_000_000)}e-1000000`), 1n)
  })
})
