import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { clean, judge } from '../faults/lab/checker.ts'
import { followFeed } from '../faults/lab/feed.ts'
import { readFinalState } from '../faults/lab/final-state.ts'
import {
  countOutcomes,
  type History,
  longestWaitMs,
  newHistory,
  waitForWrites,
} from '../faults/lab/history.ts'
import { startLoad } from '../faults/lab/load.ts'
import { stallReplication } from '../faults/lab/replication.ts'
import { startProcess, token } from '../faults/lab/service-process.ts'
import { waitUntil } from '../support/wait.ts'
import { type Cluster, clusterMissing, findPid, startCluster } from './cluster.ts'

/** How many switchovers, and how many kills of the leader. */
const rounds = Number(process.env.PATRONI_ROUNDS ?? 10)
const clients = { token, writers: 4, readers: 2, thinkMs: 25 }
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
    const service = await startProcess({ database: cluster.url })
    const history = newHistory()
    const feed = followFeed(() => service.url, token)
    const load = startLoad(history, { urls: [service.url], ...clients })
    const outages: Record<string, number[]> = { switchover: [], kill: [] }
    for (let round = 0; round < rounds; round++) {
      for (const [name, fail] of Object.entries(faults)) {
        await cluster.waitUntilWhole()
        await waitForWrites(history, 100)
        const leader = await cluster.findLeader()
        const failedAt = performance.now()
        await fail(cluster)
        await waitForWrites(history, 100)
        outages[name]?.push(longestOutageMs(history, failedAt))
        assert.notEqual(await cluster.findLeader(), leader)
      }
    }
    await cluster.waitUntilWhole()
    await load.stop()
    const state = await readFinalState(service.url, token, history)
    await feed.waitFor(state.events.at(-1)?.position)
    for (const [name, times] of Object.entries(outages))
      test.diagnostic(`${name}: ${JSON.stringify(summarise(times))}`)
    tell(test, history, { events: feed.events.length })
    assert.deepEqual(judge(history, state), clean)
    assert.deepEqual(feed.events, state.events)
    assert.ok(longestWaitMs(history) < maxWaitMs, `${longestWaitMs(history)} ms`)
    assert.equal(await service.end('SIGTERM'), 0)
  })

  it('loses plants where replication is asynchronous (control)', async (test) => {
    const cluster = await startCluster('asynchronous')
    const service = await startProcess({ database: cluster.url })
    const history = newHistory()
    const load = startLoad(history, { urls: [service.url], ...clients })
    await waitForWrites(history, 100)
    const leader = await cluster.findLeader()
    stallReplication(Number(findPid(leader)))
    await waitForWrites(history, 50)
    await faults.kill(cluster)
    await waitForWrites(history, 50)
    await load.stop()
    const verdict = judge(history, await readFinalState(service.url, token, history))
    tell(test, history, verdict)
    assert.ok(verdict.lost > 0)
  })
})

function tell(test: TestContext, history: History, more: object): void {
  const counts = { ...countOutcomes(history), longestWaitMs: longestWaitMs(history), ...more }
  test.diagnostic(JSON.stringify(counts))
}
