import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { findFreePort, newCluster, query, startServer } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { longestWaitMs } from './lab/history.ts'
import {
  database,
  type Replication,
  signalServer,
  stallReplication,
  startPair,
} from './lab/replication.ts'
import { scale } from './lab/scale.ts'
import { openTrial } from './lab/trial.ts'

const rounds = scale(1, 20)
const stopMs = scale(500, 30_000)
/** Far more than the time for an answer: only a request that hangs waits for longer. */
const maxWaitMs = 30_000
const clients = { writers: 8, thinkMs: scale(25, 0) }
const [fewWrites, someWrites] = [scale(20, 50), scale(30, 100)]

/** Stalls the replication under load, kills the primary, and promotes the standby. */
async function failOver(replication: Replication) {
  const pair = await startPair(replication)
  const trial = await openTrial({ database: pair.url, clients })
  const { history } = trial
  await trial.writes(someWrites)
  // From here on nothing reaches the standby: a write that is acknowledged without it is lost.
  stallReplication(Number(pair.primary.process.pid))
  if (replication === 'asynchronous') await trial.writes(fewWrites)
  else await waitForStandbyWait(pair.primary.toUrl(database))
  const killedAt = performance.now()
  const findAcknowledged = () =>
    history.attempts.find(({ outcome, sentAt }) => outcome === 'ok' && sentAt > killedAt)
  // No save of webhooks waits for the standby, which may lack any number of them.
  await trial.suffer(async () => {
    signalServer(pair.primary, 'SIGKILL')
    await query(pair.standby.toUrl(database), 'SELECT pg_promote()')
    await waitUntil(() => findAcknowledged() !== undefined, 'a write is acknowledged again')
  }, Number.POSITIVE_INFINITY)
  await trial.writes(fewWrites)
  const recoveryMs = Math.round((findAcknowledged()?.answeredAt ?? 0) - killedAt)
  return { trial, recoveryMs }
}

/** Resolves when a commit waits for the standby. */
function waitForStandbyWait(url: string): Promise<void> {
  const waiting = "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
  return waitUntil(async () => (await query(url, waiting)).length > 0, 'a commit waits')
}

describe('a failover of PostgreSQL', () => {
  for (let round = 1; round <= rounds; round++) {
    it(`loses and invents nothing with a synchronous standby (${round} of ${rounds})`, async (test) => {
      const { trial, recoveryMs } = await failOver('synchronous')
      await trial.requireClean(test)
      test.diagnostic(`back after ${recoveryMs} ms`)
      assert.ok(longestWaitMs(trial.history) < maxWaitMs)
      assert.equal(await trial.services[0]?.end('SIGTERM'), 0)
    })
  }

  it('loses plants when the standby is asynchronous, and webhooks continue (control)', async () => {
    const { trial } = await failOver('asynchronous')
    await trial.arrivals(fewWrites)
    assert.ok((await trial.countLost()) > 0)
  })
})

it('a service loses and invents nothing when PostgreSQL is stopped or crashes', async (test) => {
  const folder = await newCluster()
  const port = await findFreePort()
  let server = await startServer(folder, {}, { port })
  releaseAfterTest(() => server.stop())
  const trial = await openTrial({ database: server.toUrl(database), services: 2, clients })
  for (let round = 0; round < 2 * rounds; round++) {
    await trial.writes(someWrites)
    // A crash undoes the last saves of webhooks, which do not wait for the disk.
    await trial.suffer(async () => {
      const exited = once(server.process, 'exit')
      server.process.kill(round % 2 === 0 ? 'SIGINT' : 'SIGQUIT')
      await exited
      server = await startServer(folder, {}, { port })
      await waitUntil(() => trial.isReady(0), 'the service is ready')
    }, Number.POSITIVE_INFINITY)
    await trial.writes(fewWrites)
  }
  await trial.requireClean(test)
})

it('a primary that is stopped for a while keeps no write waiting, and loses nothing', async (test) => {
  const pair = await startPair('synchronous')
  const trial = await openTrial({ database: pair.url, clients })
  const { history, isReady } = trial
  await trial.writes(someWrites)
  await trial.suffer(async () => {
    signalServer(pair.primary, 'SIGSTOP')
    await sleep(stopMs)
    const sent = [...history.attempts]
    const areAnswered = () => sent.every(({ answeredAt }) => Number.isFinite(answeredAt))
    await waitUntil(areAnswered, 'every write is answered while the primary is stopped')
    await waitUntil(async () => !(await isReady(0)), 'the service is not ready')
    signalServer(pair.primary, 'SIGCONT')
    const resumedAt = performance.now()
    await waitUntil(() => isReady(0), 'the service is ready')
    test.diagnostic(`ready after ${Math.round(performance.now() - resumedAt)} ms`)
  })
  await trial.writes(fewWrites)
  await trial.requireClean(test)
  assert.ok(longestWaitMs(history) < maxWaitMs)
  assert.equal(await trial.services[0]?.end('SIGTERM'), 0)
})
