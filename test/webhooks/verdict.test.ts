import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Outcome } from '../../src/webhooks/schedule.ts'
import { judge } from '../../src/webhooks/schedule.ts'
import { defaultSettings } from '../../src/webhooks/settings.ts'

const dayMs = 86_400_000
const now = Date.UTC(2026, 0, 9)
const taken: Outcome = { status: 200, error: undefined, retryAfterMs: 0 }
const failed: Outcome = { status: 500, error: 'answered 500', retryAfterMs: 0 }
const noTimes = {
  lastSuccessAt: undefined,
  lastFailureAt: undefined,
  lastFailure: undefined,
  failingSince: undefined,
}

describe('the verdict on an attempt', () => {
  it('forgets with a success since when the receiver has failed', (test) => {
    test.mock.timers.enable({ apis: ['Date'], now })
    const before = { ...noTimes, lastFailureAt: now - 1, failingSince: now - 9 * dayMs }
    const { result, times, pause } = judge(taken, 3, before, defaultSettings)
    assert.deepEqual({ result, pause }, { result: 'done', pause: undefined })
    assert.deepEqual(times, { ...before, lastSuccessAt: now, failingSince: undefined })
  })

  it('counts from the first failure after a success', (test) => {
    test.mock.timers.enable({ apis: ['Date'], now })
    const first = judge(failed, 0, { ...noTimes, lastSuccessAt: now - 9 * dayMs }, defaultSettings)
    assert.deepEqual([first.result, first.pause], ['retry', undefined])
    assert.equal(first.times.failingSince, now)
    test.mock.timers.setTime(now + dayMs)
    const later = judge(failed, 1, first.times, defaultSettings)
    assert.equal(later.times.failingSince, now)
    assert.equal(later.times.lastFailureAt, now + dayMs)
  })

  for (const [days, expected] of [
    [3 * dayMs - 1, undefined],
    [3 * dayMs, 'every attempt has failed for 3 days'],
  ] as const) {
    it(`is ${expected ? 'a' : 'no'} pause after ${days} ms without a success`, (test) => {
      test.mock.timers.enable({ apis: ['Date'], now })
      const times = { ...noTimes, failingSince: now - days }
      assert.equal(judge(failed, 9, times, defaultSettings).pause, expected)
    })
  }

  it('gives a change up after eleven attempts, and never by 410', () => {
    assert.equal(judge(failed, 9, noTimes, defaultSettings).result, 'retry')
    assert.equal(judge(failed, 10, noTimes, defaultSettings).result, 'failed')
    const gone = { ...failed, status: 410 }
    assert.equal(judge(gone, 10, noTimes, defaultSettings).result, 'refused')
  })
})
