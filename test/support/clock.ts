import type { TestContext } from 'node:test'

/** A clock that stands still until it is moved. */
export interface Clock {
  advance(ms: number): void
}

/** Stops `performance.now` in this process for the rest of the test. Timers go on as ever. */
export function stopClock(test: TestContext): Clock {
  // An integer, so that sums of times are exact.
  let nowMs = Math.ceil(performance.now())
  test.mock.method(performance, 'now', () => nowMs)
  return {
    advance(ms) {
      nowMs += ms
    },
  }
}
