import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { newFolder } from '../support/folder.ts'
import { query } from '../support/postgres.ts'
import { waitUntil } from '../support/wait.ts'
import { call } from '../support/wire.ts'
import type { TestReceiver } from '../webhooks/test-receiver.ts'
import { type NumberedWrites, startNumberedWrites } from './lab/numbered-writes.ts'
import { addTestReceiver } from './lab/receiver.ts'
import { database, signalServer, stallReplication, startPair } from './lab/replication.ts'
import { isLong, scale } from './lab/scale.ts'
import { startProcess, token } from './lab/service-process.ts'

const command = [fileURLToPath(new URL('lab/webhook-service.ts', import.meta.url))]
const kills = scale(1, 50)
const rounds = scale(1, 20)
/** The most that may arrive twice whenever another process takes over. */
const mostTwice = 16

describe('webhooks', () => {
  it(`arrive, though the service is killed ${kills} times under load`, async (test) => {
    const { url, receiver } = await prepare()
    let service = await start(url)
    const writes = startNumberedWrites(() => service.url)
    const twice: number[] = []
    for (let kill = 0; kill < kills; kill++) {
      const before = receiver.received.length
      await waitUntil(() => receiver.received.length > before + 30, 'changes arrive')
      await sleep(Math.random() * 20)
      const repeatedBefore = writes.judge(receiver.received).repeated
      await service.end('SIGKILL')
      service = await start(url)
      await waitUntil(() => receiver.received.length > before + 90, 'changes arrive again')
      twice.push(writes.judge(receiver.received).repeated - repeatedBefore)
    }
    await finish(writes, receiver)
    test.diagnostic(`${writes.count()} acknowledged, twice after each kill: ${twice}`)
    assert.deepEqual(pick(writes, receiver), { lost: 0, misplaced: 0 })
    assert.ok(Math.max(...twice) <= mostTwice, `${twice} twice`)
  })

  it('arrive, though the receiver breaks off and comes back', async (test) => {
    const { url, receiver } = await prepare()
    const service = await start(url)
    const writes = startNumberedWrites(() => service.url)
    for (let round = 0; round < rounds; round++) {
      const before = receiver.received.length
      await waitUntil(() => receiver.received.length > before + 30, 'changes arrive')
      await receiver.restart()
    }
    await finish(writes, receiver)
    test.diagnostic(
      `${writes.count()} acknowledged, ${JSON.stringify(writes.judge(receiver.received))}`,
    )
    assert.deepEqual(pick(writes, receiver), { lost: 0, misplaced: 0 })
  })

  it('arrive, though the process that delivers is stopped, and continued when another delivers', async (test) => {
    const path = join(newFolder(), 'plants.db')
    const { url, receiver } = await prepare(`sqlite:${path}`)
    const services = [await start(url), await start(url)] as const
    let writing = 0
    const writes = startNumberedWrites(() => (services[writing] ?? services[0]).url)
    for (let round = 0; round < rounds; round++) {
      const { child: stopped } = services[round % 2] ?? services[0]
      writing = (round + 1) % 2
      const before = receiver.received.length
      await waitUntil(() => receiver.received.length > before + 30, 'changes arrive')
      await stopBetweenWrites(stopped, path)
      const stoppedAt = receiver.received.length
      await waitUntil(() => receiver.received.length > stoppedAt + 60, 'another delivers')
      stopped.kill('SIGCONT')
      const continuedAt = receiver.received.length
      await waitUntil(() => receiver.received.length > continuedAt + 30, 'changes arrive')
    }
    await finish(writes, receiver)
    const judgement = writes.judge(receiver.received)
    const takeovers = countTakeovers(url)
    test.diagnostic(
      `${writes.count()} acknowledged, ${takeovers} takeovers, ${JSON.stringify(judgement)}`,
    )
    assert.deepEqual(pick(writes, receiver), { lost: 0, misplaced: 0 })
    assert.ok(takeovers >= rounds)
    assert.ok(judgement.repeated <= mostTwice * takeovers, `${judgement.repeated} twice`)
  })

  it('arrive, though the clock is set back', async (test) => {
    const { url, receiver } = await prepare()
    const clock = fileURLToPath(new URL('lab/clock.ts', import.meta.url))
    const env = { NODE_OPTIONS: `--import=${clock}` }
    let service = await start(url, env)
    const writes = startNumberedWrites(() => service.url)
    await waitUntil(() => receiver.received.length > 30, 'changes arrive')
    service.child.kill('SIGUSR2')
    await waitUntil(() => /the clock says/.test(service.output()), 'the clock is set back')
    await waitUntil(() => receiver.received.length > 90, 'changes arrive')
    // The lease of the dead process ends an hour later, by the clock of the next.
    await service.end('SIGKILL')
    service = await start(url, env)
    service.child.kill('SIGUSR2')
    await waitUntil(() => /the clock says/.test(service.output()), 'the clock is set back')
    service.child.kill('SIGUSR2')
    const before = receiver.received.length
    await waitUntil(() => receiver.received.length > before + 60, 'changes arrive again')
    await finish(writes, receiver)
    test.diagnostic(`${writes.count()} acknowledged`)
    assert.deepEqual(pick(writes, receiver), { lost: 0, misplaced: 0 })
  })

  const skip = !isLong && 'part of FAULTS=long npm run test:faults'
  it('arrive, though PostgreSQL fails over to its synchronous standby', { skip }, async (test) => {
    const pair = await startPair('synchronous')
    const { receiver } = await prepare(pair.url)
    const service = await start(pair.url)
    const writes = startNumberedWrites(() => service.url)
    await waitUntil(() => receiver.received.length > 60, 'changes arrive')
    signalServer(pair.primary, 'SIGKILL')
    await query(pair.standby.toUrl(database), 'SELECT pg_promote()')
    const before = receiver.received.length
    await waitUntil(() => receiver.received.length > before + 60, 'changes arrive again')
    await finish(writes, receiver)
    test.diagnostic(
      `${writes.count()} acknowledged, ${JSON.stringify(writes.judge(receiver.received))}`,
    )
    assert.deepEqual(pick(writes, receiver), { lost: 0, misplaced: 0 })
  })

  it('go on where they were on a standby that lacks the last changes', { skip }, async () => {
    const pair = await startPair('asynchronous')
    const { receiver } = await prepare(pair.url)
    const service = await start(pair.url)
    const create = (name: string) => createPlant(service.url, name)
    for (let number = 0; number < 30; number++) await create('kept')
    await receiver.waitFor(30)
    const standby = pair.standby.toUrl(database)
    const primary = pair.primary.toUrl(database)
    const waiting = 'SELECT FROM plant_store.deliveries'
    await waitUntil(async () => (await query(primary, waiting)).length === 0, 'all are saved')
    const [saved] = await query(primary, 'SELECT pg_current_wal_insert_lsn() AS lsn')
    const { lsn } = saved as { lsn: string }
    const replayed = `SELECT WHERE pg_last_wal_replay_lsn() >= '${lsn}'`
    await waitUntil(async () => (await query(standby, replayed)).length > 0, 'and on the standby')
    stallReplication(Number(pair.primary.process.pid))
    await create('lost')
    await receiver.waitFor(31)
    signalServer(pair.primary, 'SIGKILL')
    await query(standby, 'SELECT pg_promote()')
    await waitUntil(() => create('new'), 'writes are accepted again')
    const names = () => receiver.received.map(({ body }) => JSON.parse(body).name)
    await waitUntil(() => names().includes('new'), 'the next change arrives')
    await waitUntil(async () => (await query(standby, waiting)).length === 0, 'nothing waits')
    assert.equal(names().filter((name) => name === 'kept').length, 30)
    const reasons = await query(standby, 'SELECT reason FROM plant_store.receivers')
    assert.deepEqual(reasons, [{ reason: null }])
  })
})

let lastId = 0

/** Creates a plant with a new id. Answers whether it is stored. */
async function createPlant(url: string, name: string): Promise<boolean> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const body = JSON.stringify({ id: ++lastId, name })
  const { status } = await call(url, { method: 'POST', path: '/plants', headers, body })
  return status === 200
}

/** A store with a receiver of every type. */
async function prepare(url = `sqlite:${join(newFolder(), 'plants.db')}`) {
  return { url, receiver: await addTestReceiver(url) }
}

/** Stops a process while it does not hold the lock of the database, which nobody could take over. */
async function stopBetweenWrites(child: ChildProcess, path: string): Promise<void> {
  using db = new DatabaseSync(path, { timeout: 1_000 })
  for (;;) {
    child.kill('SIGSTOP')
    await waitUntil(() => hasStopped(child), 'the process has stopped')
    try {
      db.exec('BEGIN IMMEDIATE; ROLLBACK')
      return
    } catch {
      child.kill('SIGCONT')
    }
  }
}

/** Whether every thread has stopped: one inside of a system call stops at its end. */
function hasStopped({ pid }: ChildProcess): boolean {
  const states = globSync(`/proc/${pid}/task/*/stat`).map((path) => readFileSync(path, 'utf8'))
  return states.every((state) => /^\d+ \(.*\) T/.test(state))
}

function start(url: string, env: Record<string, string> = {}) {
  return startProcess({ database: url, command, env })
}

/** How often the lease of the receiver went to another process. A busy machine adds some. */
function countTakeovers(url: string): number {
  using db = new DatabaseSync(url.replace('sqlite:', ''), { readOnly: true })
  const { lease_epoch: epoch } = db.prepare('SELECT lease_epoch FROM receivers').get() ?? {}
  return Number(epoch) - 1
}

/** Stops the writers and waits until everything has arrived. */
async function finish(writes: NumberedWrites, receiver: TestReceiver): Promise<void> {
  await writes.stop()
  await waitUntil(() => writes.judge(receiver.received).lost === 0, 'every change arrives')
}

function pick(writes: NumberedWrites, receiver: TestReceiver) {
  const { lost, misplaced } = writes.judge(receiver.received)
  return { lost, misplaced }
}
