import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { oldJournals, oldStores, stores12 } from '../store/old-stores.ts'
import { programEnv } from '../support/child.ts'
import { runProcess } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { clean, type Verdict } from './lab/checker.ts'
import { newHistory, waitForWrites } from './lab/history.ts'
import { startLoad } from './lab/load.ts'
import { buildRandom, type Random, seed } from './lab/random.ts'
import { cutPower, judgeRecovered, recover } from './lab/recovery.ts'
import { isLong, scale } from './lab/scale.ts'
import { programOf, startProcess, token } from './lab/service-process.ts'
import { compileShim, type Fault, newQuickFolder } from './lab/shim.ts'
import { type Operation, readTrace } from './lab/trace.ts'
import { cuts } from './lab/volatile-disk.ts'

const rounds = scale(1, 8)
/** How many moments of a round get a power cut. Each kind of cut at a moment is a point. */
const momentsPerRound = scale(8, 640)
/** Many writes make the service checkpoint its log while it runs, and not only at its end. */
const fewWrites = scale(40, 150)
const manyWrites = scale(40, 500)
const shim = compileShim()

/** A run of a service: it starts, is written to, and ends. */
interface Stretch {
  readonly clients: number
  readonly writes: number
  readonly end: 'SIGKILL' | 'SIGINT'
  readonly fault?: Fault
}

/** All operations on the disk, and the answers to the clients. */
type Recording = Awaited<ReturnType<typeof record>>

const toPath = (root: string) => join(root, 'data', 'plants.db')

function toStretches(writes: number): Stretch[] {
  return [
    { clients: 1, writes, end: 'SIGKILL' },
    { clients: 8, writes, end: 'SIGINT' },
    { clients: 3, writes, end: 'SIGKILL' },
  ]
}

/** Fails one sync of the log during writes, and one of the database during a checkpoint. */
function toFailingStretches(writes: number): Stretch[] {
  const fault = { kind: 'fsync', error: 'EIO', times: 'once' } as const
  return toStretches(writes).map((stretch) => ({
    ...stretch,
    fault:
      stretch.end === 'SIGINT'
        ? { ...fault, number: 1, suffix: '.db' }
        : { ...fault, number: 15, suffix: '-wal' },
  }))
}

/** Runs a service several times on one database, and records its operations on the disk. */
async function record(stretches: readonly Stretch[], change = '') {
  // It exists; the service makes a folder in it for the database.
  const root = newQuickFolder()
  const trace = join(newQuickFolder(), 'trace')
  // Its clock is the length of the trace.
  const history = newHistory(() => statSync(trace).size)
  const database = `sqlite:${toPath(root)}`
  for (const { clients, writes, end, fault } of stretches) {
    const env = shim.toEnv?.({ folder: root, trace, ...(fault && { fault }) }) ?? {}
    const service = await startProcess({ database, env, command: programOf(change) })
    const load = startLoad(history, { urls: [service.url], token, writers: clients, readers: 0 })
    await waitForWrites(history, writes)
    if (end === 'SIGINT') await load.stop()
    await service.end(end)
    await load.stop()
  }
  return { root, operations: readTrace(trace), history }
}

type Choose = (recording: Recording, random: Random) => number[]

/** All of them in the long form. */
const chooseAny: Choose = ({ operations }, random) =>
  random.shuffle([...operations.keys()]).slice(0, scale(20, Number.POSITIVE_INFINITY))

/** The last, one half of all operations, the other of the rare ones, which are not on the log. */
const chooseSome: Choose = ({ root, operations }, random) => {
  const all = [...operations.keys()]
  const rare = all.filter((number) => operations[number]?.path !== `${toPath(root)}-wal`)
  const some = random.shuffle(rare).slice(0, momentsPerRound / 2)
  const last = operations.length - 1
  return [...new Set([last, ...some, ...random.shuffle(all)])].slice(0, momentsPerRound)
}

/** Cuts the power at some moments. Answers the sums over all points. */
async function judge(test: TestContext, recording: Recording, choose: Choose, use: number) {
  const { root, operations, history } = recording
  const random = buildRandom(seed, use)
  const moments = choose(recording, random)
  const sums: Verdict & { damaged: number } = { ...clean, damaged: 0 }
  let first = ''
  let points = 0
  await cutPower({ root, operations, moments, random }, async (folder, operation, cut) => {
    const recovered = await recover(toPath(folder))
    const isDamaged = recovered.damage !== undefined
    const found = { ...judgeRecovered(history, recovered, operation.end), damaged: +isDamaged }
    points++
    for (const kind of Object.keys(sums) as (keyof typeof sums)[])
      Object.assign(sums, { [kind]: sums[kind] + found[kind] })
    const isWrong = Object.values(found).some((count) => count > 0)
    if (isWrong && first === '') {
      first = `after ${operation.kind} of ${operation.path}, ${cut}: ${recovered.damage}`
    }
  })
  test.diagnostic(JSON.stringify({ ...sums, points, operations: operations.length, seed }))
  return { sums, points, first: `FAULTS_SEED=${seed}: ${first}` }
}

const nothing = { ...clean, damaged: 0 }

describe('a power cut', { skip: shim.skip }, () => {
  for (let round = 1; round <= rounds; round++) {
    it(`loses, invents and damages nothing (${round} of ${rounds})`, async (test) => {
      const recording = await record(toStretches(round % 3 === 1 ? manyWrites : fewWrites))
      const { sums, points, first } = await judge(test, recording, chooseSome, round)
      assert.deepEqual(sums, nothing, first)
      assert.equal(points, momentsPerRound * cuts.length)
    })
  }

  it('leaves a database that opens, at any moment of the first start', async (test) => {
    const recording = await record([{ clients: 1, writes: 1, end: 'SIGINT' }])
    for (let round = 1; round <= scale(1, 10); round++) {
      const { sums, first } = await judge(test, recording, chooseAny, -round)
      assert.deepEqual(sums, nothing, first)
    }
  })

  it('loses, invents and damages nothing after failed syncs', async (test) => {
    const stretches = toFailingStretches(manyWrites).slice(0, scale(2, 3))
    const recording = await record(stretches)
    const failed = recording.operations.filter(({ kind }) => kind === 'failed sync')
    assert.equal(failed.length, stretches.length)
    const { sums, first } = await judge(test, recording, chooseSome, rounds + 1)
    assert.deepEqual(sums, nothing, first)
  })

  it('costs no plant that is acknowledged after a failed sync of a take of webhooks', async () => {
    const root = newQuickFolder()
    mkdirSync(join(root, 'data'))
    const trace = join(newFolder(), 'trace')
    const writer = fileURLToPath(new URL('lab/take-writer.ts', import.meta.url))
    const { stdout, stderr } = spawnSync(process.execPath, [writer, toPath(root)], {
      env: { ...programEnv, ...shim.toEnv?.({ folder: root, trace }) },
      encoding: 'utf8',
    })
    assert.equal(stdout, '2\n3\n4\n5\n', stderr)
    const operations = [...toFolder(join(root, 'data'), root), ...readTrace(trace)]
    const moments = [operations.length - 1]
    const random = buildRandom(seed, 1)
    await cutPower({ root, operations, moments, random }, async (folder, _, cut) => {
      const { stored, damage } = await recover(toPath(folder))
      assert.equal(damage, undefined, cut)
      assert.deepEqual([...stored.keys()].filter((id) => id !== 1n).sort(), [2n, 3n, 4n, 5n], cut)
    })
  })

  it('loses plants when commits are not synced (control)', async (test) => {
    const recording = await record(toStretches(fewWrites).slice(0, 1), 'unsynced commits')
    const { sums } = await judge(test, recording, chooseSome, 0)
    assert.ok(sums.lost > 0)
  })
})

it('a restore syncs the parents of the folders that it makes', { skip: shim.skip }, async () => {
  const backup = join(newFolder(), 'backup.db')
  openConnection(backup).close()
  const root = newQuickFolder()
  const operations = await recordCommand(['restore', backup], root)
  const made = operations.findIndex(({ kind }) => kind === 'make folder')
  assert.equal(operations[made]?.path, join(root, 'data'))
  const later = operations.slice(made)
  assert.ok(later.some(({ kind, path }) => kind === 'sync' && path === root))
})

const releases = { '1.0.0': oldStores[0], '1.1.0': oldJournals[0], '1.2.0': stores12[0] }

for (const [release, old] of Object.entries(releases)) {
  it(`a power cut during an upgrade from ${release} leaves a store that opens with every plant`, {
    skip: shim.skip,
  }, async (test) => {
    const url = await (old ?? assert.fail()).newUrl()
    const oldFile = url.replace('sqlite:', '')
    const root = newQuickFolder()
    mkdirSync(join(root, 'data'))
    copyFileSync(oldFile, toPath(root))
    const recorded = await recordCommand(['token', 'list'], root)
    const wanted = await recover(toPath(root))
    assert.ok(wanted.stored.size > 0)
    const before = toFile(toPath(root), readFileSync(oldFile), root)
    const operations = [...before, ...recorded]
    const random = buildRandom(seed, 1)
    let points = 0
    for (let round = 0; round < scale(1, 10); round++) {
      const moments = [...operations.keys()].slice(before.length - 1)
      const each = isLong ? cuts : [random.pick(cuts)]
      await cutPower(
        { root, operations, moments, random, cuts: each },
        async (folder, { kind, path }, cut) => {
          const at = `FAULTS_SEED=${seed}: ${kind} of ${path}, ${cut}`
          assert.deepEqual(await recover(toPath(folder)), wanted, at)
          points++
        },
      )
    }
    const isMigrated = recorded.some(({ kind }) => kind === 'sync')
    assert.ok(isMigrated && points > 10, `${points} points`)
    test.diagnostic(JSON.stringify({ points, operations: operations.length, seed }))
  })
}

/** Runs a command on the database of a folder, and records its operations on the disk. */
async function recordCommand(args: string[], root: string): Promise<Operation[]> {
  const trace = join(newQuickFolder(), 'trace')
  const { exitCode, stderr } = await runProcess(args, {
    folder: newQuickFolder(),
    env: {
      DATABASE_URL: `sqlite:${toPath(root)}`,
      ...shim.toEnv?.({ folder: root, trace }),
    },
  })
  assert.equal(exitCode, 0, stderr)
  return readTrace(trace)
}

const none = { offset: 0, data: Buffer.alloc(0), end: 0 }

/** The operations that made a folder, all synced. */
function toFolder(path: string, root: string): Operation[] {
  return [
    { ...none, kind: 'make folder', path },
    { ...none, kind: 'sync', path: root },
  ]
}

/** The operations that made a file and its folder, all synced. */
function toFile(path: string, data: Buffer, root: string): Operation[] {
  const folder = join(path, '..')
  return [
    ...toFolder(folder, root),
    { ...none, kind: 'create', path },
    { ...none, kind: 'write', path, data },
    { ...none, kind: 'sync', path },
    { ...none, kind: 'sync', path: folder },
  ]
}
