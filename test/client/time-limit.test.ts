import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { buildTimeLimit } from '../../client/time-limit.ts'
import { countTimers } from './timers.ts'

function waitForAbort({ signal }: AbortController): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
}

describe('a time limit', () => {
  it('gives each work its own time, with one timer for all', async () => {
    const before = countTimers()
    const limit = buildTimeLimit(40)
    const [early, late, quick] = [0, 1, 2].map(() => new AbortController())
    assert(early && late && quick)
    const [earlyAborts, lateAborts] = [early, late].map(waitForAbort)

    limit.start(early)
    limit.start(quick)
    const clock = new AbortController()
    buildTimeLimit(20).start(clock)
    await waitForAbort(clock)
    const lateStartedAt = performance.now()
    limit.start(late)
    limit.stop(quick)
    assert.equal(countTimers(), before + 1)

    await earlyAborts
    assert.match(String(early.signal.reason), /No answer within 40 ms\.$/)
    await lateAborts
    assert(performance.now() - lateStartedAt >= 39)
    assert.equal(quick.signal.aborted, false)
    assert.equal(countTimers(), before)
  })

  it('keeps the process alive only while there is work', () => {
    const before = countTimers()
    const limit = buildTimeLimit(60_000)
    const [one, other] = [new AbortController(), new AbortController()]
    limit.start(one)
    limit.start(other)
    assert.equal(countTimers(), before + 1)
    limit.stop(one)
    assert.equal(countTimers(), before + 1)
    limit.stop(other)
    assert.equal(countTimers(), before)
    limit.start(one)
    assert.equal(countTimers(), before + 1)
    limit.stop(one)
    assert.equal(countTimers(), before)
  })
})
