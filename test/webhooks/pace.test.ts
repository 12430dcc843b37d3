import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { openPace } from '../../src/webhooks/pace.ts'
import { stopClock } from '../support/clock.ts'

const intervalMs = 50

/** A pace whose time, requests and share of the event loop the test sets. */
function startPace(test: TestContext) {
  const clock = stopClock(test)
  test.mock.timers.enable({ apis: ['setTimeout'] })
  const state = { requests: 0, utilization: 0, measured: 0, freed: 0 }
  test.mock.method(performance, 'eventLoopUtilization', () => {
    state.measured++
    return { idle: 0, active: 0, utilization: state.utilization }
  })
  const pace = openPace({
    countRequests: () => state.requests,
    onFree: () => state.freed++,
  })
  return {
    pace,
    state,
    /** How many deliveries may start now. */
    takeAll() {
      let taken = 0
      while (taken < 10_000 && pace.take()) taken++
      return taken
    },
    endInterval({ requests = 0, utilization = 0 } = {}) {
      state.requests += requests
      state.utilization = utilization
      clock.advance(intervalMs)
      test.mock.timers.tick(intervalMs)
    },
  }
}

describe('the pace of deliveries', () => {
  it('begins carefully, and doubles while there is room', (test) => {
    const { takeAll, endInterval } = startPace(test)
    const allowed = Array.from({ length: 8 }, () => {
      const taken = takeAll()
      endInterval({ requests: 1_000, utilization: 0.4 })
      return taken
    })
    assert.deepEqual(allowed, [25, 50, 100, 200, 400, 800, 1_000, 1_000])
  })

  it('is a twentieth of the requests while clients keep the event loop busy, and at least one', (test) => {
    const { pace, takeAll, endInterval } = startPace(test)
    takeAll()
    endInterval({ requests: 1_000, utilization: 0.9 })
    assert.ok(pace.isBusy())
    assert.equal(takeAll(), 50)
    endInterval({ requests: 6, utilization: 0.9 })
    assert.equal(takeAll(), 1)
    endInterval({ requests: 6, utilization: 0.4 })
    assert.ok(!pace.isBusy())
    assert.equal(takeAll(), 2)
  })

  it('does not slow down for a loop that the deliveries themselves keep busy', (test) => {
    const { pace, takeAll, endInterval } = startPace(test)
    takeAll()
    endInterval({ requests: 5, utilization: 1 })
    assert.ok(!pace.isBusy())
    assert.equal(takeAll(), 50)
  })

  it('calls once when there is room after a refusal, and never without one', (test) => {
    const { pace, state, takeAll, endInterval } = startPace(test)
    assert.ok(pace.take())
    endInterval()
    assert.equal(state.freed, 0)
    takeAll()
    takeAll()
    endInterval()
    assert.equal(state.freed, 1)
    endInterval()
    assert.equal(state.freed, 1)
  })

  it('measures nothing at rest, and begins carefully again', (test) => {
    const { state, takeAll, endInterval } = startPace(test)
    takeAll()
    endInterval()
    assert.equal(takeAll(), 50)
    endInterval()
    endInterval()
    const { measured } = state
    for (let rest = 0; rest < 10; rest++) endInterval()
    assert.equal(state.measured, measured)
    assert.equal(takeAll(), 25)
  })

  it('measures no more when it is closed', (test) => {
    const { pace, state, takeAll, endInterval } = startPace(test)
    takeAll()
    pace.close()
    endInterval()
    assert.equal(state.freed, 0)
  })
})
