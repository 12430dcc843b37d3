import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { query } from '../support/postgres.ts'
import { waitUntil } from '../support/wait.ts'
import { call } from '../support/wire.ts'
import { clean, judge } from './lab/checker.ts'
import { followFeed } from './lab/feed.ts'
import { readFinalState } from './lab/final-state.ts'
import { countOutcomes, longestWaitMs, newHistory, waitForWrites } from './lab/history.ts'
import { startLoad } from './lab/load.ts'
import {
  database,
  type Replication,
  signalServer,
  stallReplication,
  startPair,
} from './lab/replication.ts'
import { scale } from './lab/scale.ts'
import { startProcess, token } from './lab/service-process.ts'

const rounds = scale(1, 20)
const stopMs = scale(500, 30_000)
/** Far more than the time for an answer: only a request that hangs waits for longer. */
const maxWaitMs = 30_000
const clients = { token, writers: 8, readers: 2, thinkMs: scale(25, 0) }

/** Stalls the replication under load, kills the primary, promotes the standby, and judges. */
async function failOver(replication: Replication) {
  const pair = await startPair(replication)
  const service = await startProcess({ database: pair.url })
  const history = newHistory()
  const feed = followFeed(() => service.url, token)
  const load = startLoad(history, { urls: [service.url], ...clients })
  await waitForWrites(history, scale(30, 100))
  // From here on nothing reaches the standby: a write that is acknowledged without it is lost.
  stallReplication(Number(pair.primary.process.pid))
  if (replication === 'asynchronous') await waitForWrites(history, scale(20, 50))
  else await waitForStandbyWait(pair.primary.toUrl(database))
  const killedAt = performance.now()
  signalServer(pair.primary, 'SIGKILL')
  await query(pair.standby.toUrl(database), 'SELECT pg_promote()')
  const findAcknowledged = () =>
    history.attempts.find(({ outcome, sentAt }) => outcome === 'ok' && sentAt > killedAt)
  await waitUntil(() => findAcknowledged() !== undefined, 'a write is acknowledged again')
  const recoveryMs = (findAcknowledged()?.answeredAt ?? 0) - killedAt
  await waitForWrites(history, scale(20, 50))
  await load.stop()
  const state = await readFinalState(service.url, token, history)
  const verdict = judge(history, state)
  // What a lost standby never had, its followers have seen: they are told to list again.
  if (replication === 'synchronous') {
    await feed.waitFor(state.events.at(-1)?.position)
    assert.deepEqual(feed.events, state.events)
  }
  assert.equal(await service.end('SIGTERM'), 0)
  return {
    verdict,
    recoveryMs: Math.round(recoveryMs),
    longestMs: longestWaitMs(history),
    ...countOutcomes(history),
  }
}

/** Resolves when a commit waits for the standby. */
function waitForStandbyWait(url: string): Promise<void> {
  const waiting = "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
  return waitUntil(async () => (await query(url, waiting)).length > 0, 'a commit waits')
}

describe('a failover of PostgreSQL', () => {
  for (let round = 1; round <= rounds; round++) {
    const title = 'loses and invents nothing with a synchronous standby'
    it(`${title} (${round} of ${rounds})`, async (test) => {
      const result = await failOver('synchronous')
      test.diagnostic(JSON.stringify(result))
      assert.deepEqual(result.verdict, clean)
      assert.ok(result.longestMs < maxWaitMs, `${result.longestMs} ms`)
    })
  }

  it('loses plants when the standby is asynchronous (control)', async (test) => {
    const result = await failOver('asynchronous')
    test.diagnostic(JSON.stringify(result))
    assert.ok(result.verdict.lost > 0)
  })
})

describe('a primary that stops for a while', () => {
  it('keeps no write waiting until it goes on, and loses nothing', async (test) => {
    const pair = await startPair('synchronous')
    const service = await startProcess({ database: pair.url })
    const history = newHistory()
    const load = startLoad(history, { urls: [service.url], ...clients })
    const readiness = async () => (await call(service.url, { path: '/readyz' })).status
    await waitForWrites(history, scale(30, 100))
    signalServer(pair.primary, 'SIGSTOP')
    await sleep(stopMs)
    const sent = [...history.attempts]
    const areAnswered = () => sent.every(({ answeredAt }) => Number.isFinite(answeredAt))
    await waitUntil(areAnswered, 'every write is answered while the primary is stopped')
    await waitUntil(async () => (await readiness()) === 503, 'the service is not ready')
    signalServer(pair.primary, 'SIGCONT')
    const resumedAt = performance.now()
    await waitUntil(async () => (await readiness()) === 200, 'the service is ready')
    const readyMs = Math.round(performance.now() - resumedAt)
    await waitForWrites(history, scale(20, 50))
    await load.stop()
    const longestMs = longestWaitMs(history)
    const verdict = judge(history, await readFinalState(service.url, token, history))
    test.diagnostic(JSON.stringify({ verdict, readyMs, longestMs, ...countOutcomes(history) }))
    assert.deepEqual(verdict, clean)
    assert.ok(longestMs < maxWaitMs, `${longestMs} ms`)
    assert.equal(await service.end('SIGTERM'), 0)
  })
})
