import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { type PostgresServer, query } from '../support/postgres.ts'
import { call } from '../support/wire.ts'
import { type Replication, signalServer, stallReplication, startPair } from './replication.ts'
import { scale } from './scale.ts'
import { judge, startWriters } from './writers.ts'

const rounds = scale(1, 20)
const stopMs = scale(3_000, 30_000)
/** The time for an answer, and what a busy machine may add. */
const longestWaitMs = 5_000 + 1_500
const token = 'a-token-for-the-fault-tests'

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function startService(url: string) {
  const service = start(['serve'], {
    folder: newFolder(),
    env: { PORT: '0', DATABASE_URL: url, PLANT_STORE_TOKEN: token },
  })
  const [, address = ''] = await service.waitFor(/address {3}(http:\S+)/)
  return { ...service, url: address }
}

async function readStored(server: PostgresServer): Promise<Map<bigint, string>> {
  const rows = await query<{ id: string; name: string }>(
    server.toUrl('plants'),
    'SELECT id, name FROM plant_store.plants',
  )
  return new Map(rows.map(({ id, name }) => [BigInt(id), name]))
}

/** Stalls the replication under load, kills the primary, promotes the standby, and judges. */
async function failOver(replication: Replication) {
  const pair = await startPair(replication)
  try {
    const service = await startService(pair.url)
    const writers = startWriters(service.url, token, 8)
    await pause(800)
    // From here on nothing reaches the standby: what is acknowledged now is lost, unless it waits for the standby.
    stallReplication(pair.primary)
    await pause(200)
    const killedAt = performance.now()
    signalServer(pair.primary, 'SIGKILL')
    await query(pair.standby.toUrl('plants'), 'SELECT pg_promote()')
    const isAcknowledged = () =>
      writers.attempts.find(({ outcome, sentAt }) => outcome === 'ok' && sentAt > killedAt)
    while (!isAcknowledged() && performance.now() - killedAt < 15_000) await pause(10)
    const recoveryMs = (isAcknowledged()?.answeredAt ?? Number.POSITIVE_INFINITY) - killedAt
    await pause(300)
    await writers.stop()
    const { attempts } = writers
    const longestMs = Math.max(...attempts.map(({ sentAt, answeredAt }) => answeredAt - sentAt))
    const count = (wanted: string) => attempts.filter(({ outcome }) => outcome === wanted).length
    service.child.kill('SIGTERM')
    await service.ended
    return {
      ...judge(attempts, await readStored(pair.standby)),
      recoveryMs: Math.round(recoveryMs),
      longestMs: Math.round(longestMs),
      ok: count('ok'),
      refused: count('refused'),
      unknown: count('unknown'),
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
      assert.deepEqual([result.lost, result.invented, result.wrong], [0, 0, 0])
      assert.ok(result.ok > 100)
      assert.ok(result.recoveryMs < 3_000, `${result.recoveryMs} ms`)
      assert.ok(result.longestMs < longestWaitMs, `${result.longestMs} ms`)
    })
  }

  it('is seen to lose plants when the standby is asynchronous (control)', async (test) => {
    const result = await failOver('asynchronous')
    test.diagnostic(JSON.stringify(result))
    assert.ok(result.lost > 0)
  })
})

describe('a primary that stops for a while', () => {
  it('keeps nobody waiting longer than the time for an answer, and loses nothing', async (test) => {
    const pair = await startPair('synchronous')
    try {
      const service = await startService(pair.url)
      const writers = startWriters(service.url, token, 8)
      await pause(500)
      signalServer(pair.primary, 'SIGSTOP')
      await pause(stopMs)
      const ready = await call(service.url, { path: '/readyz' })
      signalServer(pair.primary, 'SIGCONT')
      const resumedAt = performance.now()
      while ((await call(service.url, { path: '/readyz' })).status !== 200) await pause(10)
      const readyMs = performance.now() - resumedAt
      await pause(500)
      await writers.stop()
      const longestMs = Math.max(
        ...writers.attempts.map(({ sentAt, answeredAt }) => answeredAt - sentAt),
      )
      const verdict = judge(writers.attempts, await readStored(pair.primary))
      test.diagnostic(
        JSON.stringify({
          ...verdict,
          readyMs: Math.round(readyMs),
          longestMs: Math.round(longestMs),
        }),
      )
      assert.equal(ready.status, 503)
      assert.deepEqual(verdict, { lost: 0, invented: 0, wrong: 0 })
      assert.ok(readyMs < 1_000, `${readyMs} ms`)
      assert.ok(longestMs < longestWaitMs, `${longestMs} ms`)
      service.child.kill('SIGTERM')
      await service.ended
    } finally {
      await pair.stop()
    }
  })
})
