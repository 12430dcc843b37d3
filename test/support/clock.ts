import type { TestContext } from 'node:test'

/** A clock that stands still until it is moved, beside the wall clock, which continues. */
export type Clock = ReturnType<typeof stopClock>

/** Stops `performance.now` in this process for the rest of the test. Timers continue. */
export function stopClock(test: TestContext) {
  // An integer, so that sums of times are exact.
  let nowMs = Math.ceil(performance.now())
  let stepMs = 0
  const wallMs = Date.now
  test.mock.method(performance, 'now', () => nowMs)
  test.mock.method(Date, 'now', () => wallMs() + stepMs)
  return {
    advance(ms: number): void {
      nowMs += ms
    },
    /** Sets the wall clock forward, or back. */
    stepWall(ms: number): void {
      stepMs += ms
    },
  }
}
