import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { openCaution } from '../../src/webhooks/caution.ts'
import { stopClock } from '../support/clock.ts'

const manyFailures = 16
const pauseMs = 100

function startCaution(test: TestContext) {
  const clock = stopClock(test)
  test.mock.timers.enable({ apis: ['setTimeout'] })
  const calls = { onTime: 0 }
  const caution = openCaution(() => calls.onTime++)
  return {
    caution,
    calls,
    fail(times: number) {
      for (let count = 0; count < times; count++) caution.note('failure')
    },
    wait(ms: number) {
      clock.advance(ms)
      test.mock.timers.tick(ms)
    },
    /** How many changes may be sent for the first time now, of many. */
    begin: () => Array.from({ length: 20 }, () => caution.mayBegin()).filter(Boolean).length,
  }
}

describe('the caution with a receiver', () => {
  it('lets everything begin while failures are few', (test) => {
    const { begin, fail } = startCaution(test)
    fail(manyFailures - 1)
    assert.equal(begin(), 20)
  })

  it('lets one change begin at a time, with a pause, after many failures in a row', (test) => {
    const { begin, fail, wait } = startCaution(test)
    fail(manyFailures)
    assert.equal(begin(), 1)
    wait(pauseMs - 1)
    assert.equal(begin(), 0)
    wait(1)
    assert.equal(begin(), 1)
  })

  it('calls once when the pause is over, however often it refused', (test) => {
    const { begin, fail, wait, calls } = startCaution(test)
    fail(manyFailures)
    begin()
    wait(pauseMs - 1)
    begin()
    assert.equal(calls.onTime, 0)
    wait(1)
    assert.equal(calls.onTime, 1)
    wait(10 * pauseMs)
    assert.equal(calls.onTime, 1)
  })

  it('ends with the first success', (test) => {
    const { caution, begin, fail } = startCaution(test)
    fail(10 * manyFailures)
    begin()
    caution.note('success')
    assert.equal(begin(), 20)
    fail(manyFailures - 1)
    assert.equal(begin(), 20)
  })

  it('calls no more when it is closed', (test) => {
    const { caution, begin, fail, wait, calls } = startCaution(test)
    fail(manyFailures)
    begin()
    caution.close()
    wait(pauseMs)
    assert.equal(calls.onTime, 0)
  })
})
