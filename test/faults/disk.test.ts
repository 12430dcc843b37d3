import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type DiskVerdict, type Kind, strike } from './lab/disk-faults.ts'
import { buildRandom, seed } from './lab/random.ts'
import { scale } from './lab/scale.ts'
import { compileShim } from './lab/shim.ts'

const faults = { adaptive: scale(8, 2_000), thread: scale(4, 500) }
const shim = compileShim()

async function strikeAndReport(
  test: TestContext,
  kind: Kind,
  count: number,
  use: number,
): Promise<DiskVerdict> {
  const startedAt = performance.now()
  const verdict = await strike(shim, kind, count, buildRandom(seed, use))
  const seconds = Math.round((performance.now() - startedAt) / 100) / 10
  test.diagnostic(JSON.stringify({ ...verdict, seconds, seed }))
  return verdict
}

describe('a disk fault', { skip: shim.skip }, () => {
  for (const [writer, use] of [
    ['adaptive', 100],
    ['thread', 103],
  ] as const) {
    it(`loses and damages nothing, and leaves a store that works: ${writer}`, async (test) => {
      const kind = { carefulness: 'careful', writer } as const
      const verdict = await strikeAndReport(test, kind, faults[writer], use)
      const { lost, invented, wrong, damaged, readFailures, stuck, unexpected, first } = verdict
      assert.deepEqual(
        { lost, invented, wrong, damaged, readFailures, stuck, unexpected },
        { lost: 0, invented: 0, wrong: 0, damaged: 0, readFailures: 0, stuck: 0, unexpected: 0 },
        `FAULTS_SEED=${seed}: ${first}`,
      )
    })
  }

  for (const carefulness of ['swallows failures', 'answers early'] as const) {
    it(`loses plants of a store that ${carefulness} (control)`, async (test) => {
      const kind = { carefulness, writer: 'adaptive' } as const
      const verdict = await strikeAndReport(test, kind, 20, 101)
      assert.ok(verdict.lost > 0)
    })
  }

  it('invents plants of a store that refuses what it stored (control)', async (test) => {
    const kind = { carefulness: 'refuses what it stored', writer: 'adaptive' } as const
    const verdict = await strikeAndReport(test, kind, 5, 102)
    assert.ok(verdict.invented > 0)
  })
})
