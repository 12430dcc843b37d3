import assert from 'node:assert/strict'
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { waitUntil } from '../support/wait.ts'
import { call } from '../support/wire.ts'
import { clean } from './lab/checker.ts'
import { countOutcomes, type History, newHistory, waitForWrites } from './lab/history.ts'
import { startLoad } from './lab/load.ts'
import { buildRandom, type Random, seed } from './lab/random.ts'
import { judgeRecovered, recover } from './lab/recovery.ts'
import { scale } from './lab/scale.ts'
import { programOf, startProcess, token } from './lab/service-process.ts'
import { compileShim, type Fault, newQuickFolder } from './lab/shim.ts'

const faults = scale(5, 400)
const slowWrites = scale(100, 16_000)
const syncMs = 20
const shim = compileShim()
const authorized = { Authorization: `Bearer ${token}` }

/** About how many operations of each kind a round makes, so that most faults strike. */
const operations: Record<Fault['kind'], Partial<Record<Fault['suffix'], number>>> = {
  write: { '': 160, '-wal': 120, '.db': 30, '-shm': 4 },
  fsync: { '': 24, '-wal': 20, '.db': 2 },
  truncate: { '': 2, '-shm': 1 },
}

function chooseFault(random: Random): Fault {
  const kind = random.pick(['write', 'write', 'write', 'fsync', 'fsync', 'truncate'] as const)
  const suffix = random.pick(Object.keys(operations[kind]) as Fault['suffix'][])
  const number = 1 + random.below(operations[kind][suffix] ?? 1)
  const error = random.pick(['EIO', 'ENOSPC'] as const)
  return { kind, number, suffix, error, times: random.pick(['once', 'once', 'on']) }
}

/** Opens a copy of the files that the service left, and judges. */
async function judgeFolder(folder: string, history: History) {
  const copy = join(newQuickFolder(), 'copy')
  cpSync(folder, copy, { recursive: true })
  const recovered = await recover(join(copy, 'plants.db'))
  return { ...judgeRecovered(history, recovered), damage: recovered.damage }
}

/** Lets a fault meet a service under load; undefined if it never struck. */
async function strike(fault: Fault, change = '') {
  const folder = newQuickFolder()
  const database = `sqlite:${join(folder, 'plants.db')}`
  const strikes = join(newQuickFolder(), 'strikes')
  openConnection(join(folder, 'plants.db')).close()
  const env = shim.toEnv?.({ folder, fault, strikes }) ?? {}
  const command = programOf(change)
  const history = newHistory()
  // A service whose start fails is started again, as an operator does.
  const start = () => startProcess({ database, env, command }).catch(() => undefined)
  const service = (await start()) ?? (await start())
  if (service === undefined) {
    return { verdict: await judgeFolder(folder, history), history, read: undefined }
  }
  const load = startLoad(history, { urls: [service.url], token, writers: 4, readers: 1 })
  const isOver = () => existsSync(strikes) || history.attempts.length > 400
  await waitUntil(isOver, 'the fault strikes')
  const later = history.attempts.length + 20
  await waitUntil(() => history.attempts.length >= later, 'the service continues')
  // A list that is read after the fault.
  const { status } = await call(service.url, { path: '/plants?limit=5', headers: authorized })
  await service.end('SIGKILL')
  await load.stop()
  if (!existsSync(strikes)) return undefined
  return { verdict: await judgeFolder(folder, history), history, read: status }
}

const noMistakes = { ...clean, damage: undefined }

describe('a service whose disk fails', { skip: shim.skip }, () => {
  it('keeps acknowledged plants, stores nothing that it refuses, and reads', async (test) => {
    const sums = { faults: 0, ok: 0, refused: 0, unknown: 0 }
    // Some faults are met by no write, and some by every one.
    const isProved = () => sums.ok > 0 && sums.refused + sums.unknown > 0
    for (let index = 0; sums.faults < faults || !isProved(); index++) {
      const fault = chooseFault(buildRandom(seed, index))
      const struck = await strike(fault)
      if (struck === undefined) continue
      const message = `FAULTS_SEED=${seed}: ${JSON.stringify(fault)}`
      assert.deepEqual(struck.verdict, noMistakes, message)
      if (struck.read !== undefined) assert.equal(struck.read, 200, message)
      const { ok, refused, unknown } = countOutcomes(struck.history)
      sums.faults++
      sums.ok += ok
      sums.refused += refused
      sums.unknown += unknown
    }
    test.diagnostic(JSON.stringify({ ...sums, seed }))
  })

  // From the first commit under load on, no write succeeds.
  const full: Fault = { kind: 'write', number: 30, suffix: '-wal', error: 'ENOSPC', times: 'on' }
  for (const [change, caughtAs] of [
    ['swallowCommitErrors', 'lost'],
    ['refuseStored', 'invented'],
  ] as const) {
    it(`is caught when its store does this: ${change} (control)`, async () => {
      const struck = await strike(full, change)
      assert.ok((struck?.verdict[caughtAs] ?? 0) > 0, JSON.stringify(struck?.verdict))
    })
  }

  it('answers every request when each sync is slow', async (test) => {
    const folder = newQuickFolder()
    const path = join(folder, 'plants.db')
    const env = shim.toEnv?.({ folder, syncMs }) ?? {}
    const service = await startProcess({ database: `sqlite:${path}`, env })
    const history = newHistory()
    const load = startLoad(history, { urls: [service.url], token, writers: 16, readers: 0 })
    const startedAt = performance.now()
    await waitForWrites(history, slowWrites)
    await load.stop()
    const elapsedMs = performance.now() - startedAt
    await service.end('SIGKILL')
    const { ok, refused, unknown } = countOutcomes(history)
    test.diagnostic(JSON.stringify({ ok, elapsedMs: Math.round(elapsedMs) }))
    assert.deepEqual(await judgeFolder(folder, history), noMistakes)
    assert.deepEqual([refused, unknown], [0, 0])
    // Each commit took a slow sync: without the shim there would be far more of them.
    assert.ok(ok <= 16 * Math.ceil(elapsedMs / syncMs))
  })
})
