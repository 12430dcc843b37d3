import assert from 'node:assert/strict'
import { join, relative } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { buildRandom, type Random, seed } from './lab/random.ts'
import { layOut, recover } from './lab/recovery.ts'
import { scale } from './lab/scale.ts'
import { compileShim, newQuickFolder } from './lab/shim.ts'
import { findLosses } from './lab/traced-history.ts'
import { type Recording, record, type Stretch } from './lab/traced-service.ts'
import { buildVolatileDisk, cuts } from './lab/volatile-disk.ts'

const rounds = scale(1, 8)
/** How many moments of a round get a power cut. Each kind of cut at a moment is a point. */
const momentsPerRound = scale(8, 640)
/** Many writes make the service checkpoint its log while it runs, and not only at its end. */
const fewWrites = scale(40, 150)
const manyWrites = scale(40, 500)

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

const shim = compileShim()

/** The sums over all points. */
interface Verdict {
  points: number
  lost: number
  invented: number
  damaged: number
  firstDamage: string | undefined
}

async function cutPower(
  recording: Recording,
  moments: ReadonlySet<number>,
  random: Random,
): Promise<Verdict> {
  const { root, path, operations, history } = recording
  const disk = buildVolatileDisk(root)
  const folder = join(newQuickFolder(), 'disk')
  const copy = join(folder, relative(root, path))
  const verdict: Verdict = { points: 0, lost: 0, invented: 0, damaged: 0, firstDamage: undefined }
  for (const [number, operation] of operations.entries()) {
    disk.apply(operation)
    if (!moments.has(number)) continue
    for (const cut of cuts) {
      layOut(folder, root, disk.cutPower(cut, random))
      const { stored, damage } = await recover(copy)
      const { lost, invented } = findLosses(history, stored, operation.end)
      verdict.points++
      verdict.lost += lost
      verdict.invented += invented
      if (damage === undefined) continue
      verdict.damaged++
      const what = `operation ${number}, ${operation.kind} of ${operation.path}`
      verdict.firstDamage ??= `after ${what}, ${cut}: ${damage}`
    }
  }
  return verdict
}

type Choose = (recording: Recording, random: Random) => Set<number>

/** All of them in the long form. */
const chooseAny: Choose = (recording, random) =>
  new Set(
    random.shuffle([...recording.operations.keys()]).slice(0, scale(20, Number.POSITIVE_INFINITY)),
  )

/** One half of all operations, the other of the rare ones, which are not on the log. */
const chooseSome: Choose = (recording, random) => {
  const all = [...recording.operations.keys()]
  const isRare = (number: number) => recording.operations[number]?.path !== `${recording.path}-wal`
  const chosen = new Set(random.shuffle(all.filter(isRare)).slice(0, momentsPerRound / 2))
  for (const number of random.shuffle(all)) {
    if (chosen.size < momentsPerRound) chosen.add(number)
  }
  return chosen
}

async function judge(
  test: TestContext,
  recording: Recording,
  choose: Choose,
  use: number,
): Promise<Verdict> {
  const random = buildRandom(seed, use)
  const startedAt = performance.now()
  const verdict = await cutPower(recording, choose(recording, random), random)
  const seconds = Math.round((performance.now() - startedAt) / 100) / 10
  const { acknowledged, operations, path } = recording
  const checkpointWrites = operations.filter(
    (operation) => operation.kind === 'write' && operation.path === path,
  ).length
  const figures = { acknowledged, operations: operations.length, checkpointWrites, seconds, seed }
  test.diagnostic(JSON.stringify({ ...verdict, ...figures }))
  return verdict
}

function assertNothingWrong(verdict: Verdict): void {
  const { lost, invented, damaged } = verdict
  const message = `FAULTS_SEED=${seed}: ${JSON.stringify(verdict)}`
  assert.deepEqual({ lost, invented, damaged }, { lost: 0, invented: 0, damaged: 0 }, message)
}

describe('a power cut', { skip: shim.skip }, () => {
  for (let round = 1; round <= rounds; round++) {
    it(`loses, invents and damages nothing (${round} of ${rounds})`, async (test) => {
      const writes = round % 3 === 1 ? manyWrites : fewWrites
      const recording = await record(shim, 'service', toStretches(writes))
      assert.equal(recording.acknowledged, 3 * writes, 'every write is acknowledged')
      const verdict = await judge(test, recording, chooseSome, round)
      assertNothingWrong(verdict)
      assert.equal(verdict.points, momentsPerRound * cuts.length)
    })
  }

  it('leaves a database that opens, at any moment of the first start', async (test) => {
    const recording = await record(shim, 'service', [{ clients: 1, writes: 1, end: 'SIGINT' }])
    for (let round = 1; round <= scale(1, 10); round++) {
      assertNothingWrong(await judge(test, recording, chooseAny, -round))
    }
  })

  it('loses, invents and damages nothing after failed syncs', async (test) => {
    const stretches = toFailingStretches(manyWrites).slice(0, scale(2, 3))
    const recording = await record(shim, 'service', stretches)
    const failed = recording.operations.filter(({ kind }) => kind === 'failed sync')
    assert.equal(failed.length, stretches.length)
    assert.ok(recording.acknowledged < stretches.length * manyWrites)
    assertNothingWrong(await judge(test, recording, chooseSome, rounds + 1))
  })

  it('loses plants when commits are not synced (control)', async (test) => {
    const recording = await record(shim, 'lax service', toStretches(fewWrites).slice(0, 1))
    const verdict = await judge(test, recording, chooseSome, 0)
    assert.ok(verdict.lost > 0)
  })
})
