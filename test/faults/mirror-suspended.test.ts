import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PlantStore, PlantStoreError } from '../../client/index.ts'
import { postgres } from '../support/engines.ts'
import { openClient } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { scale } from './lab/scale.ts'
import { startProcess, token } from './lab/service-process.ts'

const rounds = scale(1, 8)
const mirrorCount = scale(8, 50)
/** The process is suspended until every mirror was told to wait, and for this long at least. */
const pauseMs = scale(0, 3_000)

/** Replaces a plant of its own with a number that grows, until it is stopped. */
function startWriter(url: string, id: bigint) {
  const store = new PlantStore({ url, token })
  let isStopped = false
  let acknowledged = 0
  async function write(): Promise<void> {
    for (let number = 1; !isStopped; number++) {
      try {
        await store.replace(id, { name: `${number}` })
        acknowledged = number
      } catch (error) {
        assert.ok(error instanceof PlantStoreError)
      }
    }
  }
  const writing = write()
  const stop = () => {
    isStopped = true
    return writing
  }
  releaseAfterTest(stop)
  return { id, acknowledged: () => acknowledged, stop }
}

/** Follows a service. Counts the changes after `synced` that bring back an earlier state. */
function startMirror(url: string) {
  const controller = new AbortController()
  const numbers = new Map<bigint, number>()
  const state = { isRefused: false, isSynced: false, stepsBack: 0 }
  const onRetry = ({ error }: PlantStoreError) => {
    if (error === 50301) state.isRefused = true
  }

  async function follow(): Promise<void> {
    const store = new PlantStore({ url, token, onRetry })
    for await (const change of store.mirror({ signal: controller.signal })) {
      if (change.type === 'synced') state.isSynced = true
      if (!('plant' in change)) continue
      const { id, name } = change.plant
      if (state.isSynced && Number(name) < (numbers.get(id) ?? 0)) state.stepsBack++
      numbers.set(id, Number(name))
    }
  }

  const following = follow().catch((error: unknown) => {
    if (!controller.signal.aborted) throw error
  })
  const stop = () => {
    controller.abort()
    return following
  }
  releaseAfterTest(stop)
  return { state, numbers, stop }
}

describe('mirrors of a service on PostgreSQL', () => {
  it('never go back in time while another process is suspended inside a commit', async (test) => {
    const database = await postgres.newUrl()
    const serving = await startProcess({ database })
    const name = 'suspended'
    const suspended = await startProcess({ database: `${database}?application_name=${name}` })
    const admin = await openClient(database)
    releaseAfterTest(() => admin.end())
    const ids = Array.from({ length: 8 }, (_, index) => BigInt(index))
    const writers = ids.map((id) => startWriter((id < 4n ? suspended : serving).url, id))
    await waitUntil(
      () => writers.every(({ acknowledged }) => acknowledged() > 5),
      'all have written',
    )

    const ofSuspended = `pg_stat_activity WHERE application_name = '${name}'`
    const holds = `SELECT FROM pg_locks WHERE relation = 'plant_store.journal_seq'::regclass
      AND mode = 'RowExclusiveLock' AND pid IN (SELECT pid FROM ${ofSuspended})`
    /** Stops the process while one of its transactions has a number and does not commit. */
    async function suspend(): Promise<boolean> {
      suspended.child.kill('SIGSTOP')
      const busy = `SELECT FROM ${ofSuspended} AND state = 'active'`
      await waitUntil(async () => (await admin.query(busy)).rowCount === 0, 'the server waits')
      if ((await admin.query(holds)).rowCount !== 0) return true
      suspended.child.kill('SIGCONT')
      return false
    }

    let stepsBack = 0
    const delays: number[] = []
    for (let round = 0; round < rounds; round++) {
      await waitUntil(suspend, 'the process is suspended inside a commit')
      const stoppedAt = performance.now()
      const mirrors = Array.from({ length: mirrorCount }, () => startMirror(serving.url))
      const states = mirrors.map(({ state }) => state)
      const isOver = () =>
        performance.now() - stoppedAt >= pauseMs &&
        states.every((state) => state.isSynced || state.isRefused)
      await waitUntil(isOver, 'every mirror was told to wait')
      suspended.child.kill('SIGCONT')
      const resumedAt = performance.now()
      await waitUntil(() => states.every(({ isSynced }) => isSynced), 'every mirror is synced')
      delays.push(performance.now() - resumedAt)
      const expected = writers.map(({ id, acknowledged }) => [id, acknowledged()] as const)
      const hasAll = ({ numbers }: (typeof mirrors)[number]) =>
        expected.every(([id, number]) => (numbers.get(id) ?? 0) > number)
      await waitUntil(() => mirrors.every(hasAll), 'every mirror has what came later')
      stepsBack += states.reduce((sum, state) => sum + state.stepsBack, 0)
      await Promise.all(mirrors.map(({ stop }) => stop()))
      test.diagnostic(`suspended for ${Math.round(resumedAt - stoppedAt)} ms`)
    }
    test.diagnostic(`all synced after ${delays.map(Math.round).join(', ')} ms`)
    assert.equal(stepsBack, 0)
  })
})
