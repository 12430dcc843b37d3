import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { engines } from '../support/engines.ts'
import { scale } from './lab/scale.ts'
import { openTrial } from './lab/trial.ts'

/** An hour in the long run. */
const minutes = Number(process.env.SOAK_MINUTES ?? scale(0.08, 60))
const sampleMs = 250
/** A figure may grow by this factor, and by this many descriptors or MB beyond it. */
const mostGrowth = { factor: 1.5, beyond: 20 }

type Sample = ReturnType<typeof takeSample>

/** What a process takes. */
function takeSample({ pid }: ChildProcess) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const rssMb = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024
  return { rssMb, descriptors: readdirSync(`/proc/${pid}/fd`).length }
}

function toMedian(samples: readonly Sample[], figure: keyof Sample): number {
  const sorted = samples.map((sample) => sample[figure]).sort((a, b) => a - b)
  return Math.round(sorted[Math.floor(sorted.length / 2)] ?? Number.NaN)
}

/** Compares the last quarter with the second one: a process needs some time to reach its size. */
function compare(samples: readonly Sample[]) {
  const quarter = samples.length / 4
  return (['rssMb', 'descriptors'] as const).map((figure) => {
    const from = toMedian(samples.slice(quarter, 2 * quarter), figure)
    const to = toMedian(samples.slice(3 * quarter), figure)
    return { figure, from, to, isLevel: to <= from * mostGrowth.factor + mostGrowth.beyond }
  })
}

for (const engine of engines) {
  const services = engine.name === 'SQLite' ? 1 : 2
  it(`everything at once on ${engine.name} keeps every promise for ${minutes} minutes`, async (test) => {
    const clients = { writers: 4, readers: 1, thinkMs: 100 }
    const trial = await openTrial({ database: await engine.newUrl(), services, clients })
    const lives = trial.services.map(({ child }) => ({ child, samples: [] as Sample[] }))
    const endsAt = performance.now() + minutes * 60_000
    while (performance.now() < endsAt || lives.some(({ samples }) => samples.length < 8)) {
      for (const { child, samples } of lives) samples.push(takeSample(child))
      await sleep(sampleMs)
    }
    await trial.requireClean(test)
    for (const { samples } of lives) {
      const figures = compare(samples)
      test.diagnostic(JSON.stringify(figures))
      assert.ok(figures.every(({ isLevel }) => isLevel))
    }
  })
}

for (const figure of ['rssMb', 'descriptors'] as const) {
  it(`the comparison of samples notices that ${figure} grows (control)`, () => {
    const samples = Array.from({ length: 40 }, (_, at) => {
      const level = { rssMb: 90, descriptors: 30 }
      return { ...level, [figure]: level[figure] + at * 10 }
    })
    const found = compare(samples).filter(({ isLevel }) => !isLevel)
    const figures = found.map((one) => one.figure)
    assert.deepEqual(figures, [figure])
  })
}
