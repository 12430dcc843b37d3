import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type History, longestWaitMs } from '../faults/lab/history.ts'
import { stallReplication } from '../faults/lab/replication.ts'
import { openTrial } from '../faults/lab/trial.ts'
import { waitUntil } from '../support/wait.ts'
import { type Cluster, clusterMissing, findPid, startCluster } from './cluster.ts'

/** How many switchovers, and how many kills of the leader. */
const rounds = Number(process.env.PATRONI_ROUNDS ?? 10)
const clients = { writers: 4, thinkMs: 25 }
/** Far more than the time for an answer: only a request that hangs waits for longer. */
const maxWaitMs = 30_000

/** Takes the leadership from the leader, and answers when another node has it. */
type Fault = (cluster: Cluster) => Promise<void>

const faults: Record<'switchover' | 'kill', Fault> = {
  switchover: (cluster) => cluster.switchOver(),

  async kill(cluster) {
    const leader = await cluster.findLeader()
    cluster.kill(leader)
    const isFollowed = async () => (await cluster.findLeader()) !== leader
    await waitUntil(isFollowed, 'another node is the leader')
    cluster.restart(leader)
  },
}

/** The longest time without an acknowledged write from a moment on. */
function longestOutageMs({ attempts }: History, from: number): number {
  const times = attempts
    .filter(({ outcome, answeredAt }) => outcome === 'ok' && answeredAt >= from)
    .map(({ answeredAt }) => answeredAt)
    .sort((a, b) => a - b)
  const gaps = times.map((at, index) => at - (times[index - 1] ?? from))
  return Math.round(Math.max(...gaps))
}

function summarise(outagesMs: readonly number[]) {
  const sorted = outagesMs.toSorted((a, b) => a - b)
  const middle = sorted.slice((sorted.length - 1) / 2, sorted.length / 2 + 1)
  const medianMs = middle.reduce((sum, each) => sum + each, 0) / middle.length
  return { count: sorted.length, medianMs, worstMs: sorted.at(-1), each: outagesMs }
}

describe('a cluster of Patroni', { skip: clusterMissing }, () => {
  it(`is followed through ${rounds} switchovers and ${rounds} kills of its leader`, async (test) => {
    const cluster = await startCluster('synchronous')
    const trial = await openTrial({ database: cluster.url, clients })
    const { history } = trial
    const outages: Record<string, number[]> = { switchover: [], kill: [] }
    for (let round = 0; round < rounds; round++) {
      for (const [name, fail] of Object.entries(faults)) {
        await cluster.waitUntilWhole()
        await trial.writes(100)
        const leader = await cluster.findLeader()
        const failedAt = performance.now()
        await trial.suffer(async () => {
          await fail(cluster)
          await trial.writes(100)
        })
        outages[name]?.push(longestOutageMs(history, failedAt))
        assert.notEqual(await cluster.findLeader(), leader)
      }
    }
    await cluster.waitUntilWhole()
    for (const [name, times] of Object.entries(outages))
      test.diagnostic(`${name}: ${JSON.stringify(summarise(times))}`)
    await trial.requireClean(test)
    assert.ok(longestWaitMs(history) < maxWaitMs, `${longestWaitMs(history)} ms`)
    assert.equal(await trial.services[0]?.end('SIGTERM'), 0)
  })

  it('loses plants where replication is asynchronous (control)', async () => {
    const cluster = await startCluster('asynchronous')
    const trial = await openTrial({ database: cluster.url, clients })
    await trial.writes(100)
    const leader = await cluster.findLeader()
    stallReplication(Number(findPid(leader)))
    await trial.writes(50)
    await faults.kill(cluster)
    await trial.writes(50)
    assert.ok((await trial.countLost()) > 0)
  })
})
