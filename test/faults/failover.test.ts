import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { query } from '../support/postgres.ts'
import { call } from '../support/wire.ts'
import { clean, judge } from './checker.ts'
import { readFinalState } from './final-state.ts'
import { countOutcomes, longestWaitMs, newHistory } from './history.ts'
import { startLoad } from './load.ts'
import { type Replication, signalServer, stallReplication, startPair } from './replication.ts'
import { scale } from './scale.ts'
import { startProcess, token } from './service-process.ts'

const rounds = scale(1, 20)
const stopMs = scale(3_000, 30_000)
/** The time for an answer, and what a busy machine may add. */
const maxWaitMs = 5_000 + 1_500
const clients = { token, writers: 8, readers: 2 }

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Stalls the replication under load, kills the primary, promotes the standby, and judges. */
async function failOver(replication: Replication) {
  const pair = await startPair(replication)
  try {
    const service = await startProcess({ database: pair.url })
    const history = newHistory()
    const load = startLoad(history, { urls: [service.url], ...clients })
    await pause(800)
    // From here on nothing reaches the standby: what is acknowledged now is lost, unless it waits for the standby.
    stallReplication(pair.primary)
    await pause(200)
    const killedAt = performance.now()
    signalServer(pair.primary, 'SIGKILL')
    await query(pair.standby.toUrl('plants'), 'SELECT pg_promote()')
    const findAcknowledged = () =>
      history.attempts.find(({ outcome, sentAt }) => outcome === 'ok' && sentAt > killedAt)
    while (!findAcknowledged() && performance.now() - killedAt < 15_000) await pause(10)
    const recoveryMs = (findAcknowledged()?.answeredAt ?? Number.POSITIVE_INFINITY) - killedAt
    await pause(300)
    await load.stop()
    const verdict = judge(history, await readFinalState(service.url, token, history))
    await service.end('SIGTERM')
    return {
      verdict,
      recoveryMs: Math.round(recoveryMs),
      longestMs: longestWaitMs(history),
      ...countOutcomes(history),
    }
  } finally {
    await pair.stop()
  }
}

describe('a failover of PostgreSQL', () => {
  for (let round = 1; round <= rounds; round++) {
    it(`loses and invents nothing with a synchronous standby (${round} of ${rounds})`, async (test) => {
      const result = await failOver('synchronous')
      test.diagnostic(JSON.stringify(result))
      assert.deepEqual(result.verdict, clean)
      assert.ok(result.ok > 10)
      assert.ok(result.recoveryMs < 3_000, `${result.recoveryMs} ms`)
      assert.ok(result.longestMs < maxWaitMs, `${result.longestMs} ms`)
    })
  }

  it('is seen to lose plants when the standby is asynchronous (control)', async (test) => {
    const result = await failOver('asynchronous')
    test.diagnostic(JSON.stringify(result))
    assert.ok(result.verdict.lost > 0)
  })
})

describe('a primary that stops for a while', () => {
  it('keeps nobody waiting longer than the time for an answer, and loses nothing', async (test) => {
    const pair = await startPair('synchronous')
    try {
      const service = await startProcess({ database: pair.url })
      const history = newHistory()
      const load = startLoad(history, { urls: [service.url], ...clients })
      await pause(500)
      signalServer(pair.primary, 'SIGSTOP')
      await pause(stopMs)
      const ready = await call(service.url, { path: '/readyz' })
      signalServer(pair.primary, 'SIGCONT')
      const resumedAt = performance.now()
      while ((await call(service.url, { path: '/readyz' })).status !== 200) await pause(10)
      const readyMs = Math.round(performance.now() - resumedAt)
      await pause(500)
      await load.stop()
      const longestMs = longestWaitMs(history)
      const verdict = judge(history, await readFinalState(service.url, token, history))
      test.diagnostic(JSON.stringify({ verdict, readyMs, longestMs, ...countOutcomes(history) }))
      assert.equal(ready.status, 503)
      assert.deepEqual(verdict, clean)
      assert.ok(readyMs < 1_000, `${readyMs} ms`)
      assert.ok(longestMs < maxWaitMs, `${longestMs} ms`)
      await service.end('SIGTERM')
    } finally {
      await pair.stop()
    }
  })
})
