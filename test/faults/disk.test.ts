import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { Carefulness } from './lab/careless-stores.ts'
import { type DiskVerdict, strike } from './lab/disk-faults.ts'
import { buildRandom, seed } from './lab/random.ts'
import { scale } from './lab/scale.ts'
import { compileShim } from './lab/shim.ts'

const faults = scale(8, 2_000)
const shim = compileShim()

async function strikeAndReport(
  test: TestContext,
  carefulness: Carefulness,
  count: number,
  use: number,
): Promise<DiskVerdict> {
  const startedAt = performance.now()
  const verdict = await strike(shim, carefulness, count, buildRandom(seed, use))
  const seconds = Math.round((performance.now() - startedAt) / 100) / 10
  test.diagnostic(JSON.stringify({ ...verdict, seconds, seed }))
  return verdict
}

describe('a disk fault', { skip: shim.skip }, () => {
  it('loses and damages nothing, and leaves a store that works', async (test) => {
    const verdict = await strikeAndReport(test, 'careful', faults, 100)
    const { lost, invented, wrong, damaged, readFailures, stuck, unexpected, first } = verdict
    assert.deepEqual(
      { lost, invented, wrong, damaged, readFailures, stuck, unexpected },
      { lost: 0, invented: 0, wrong: 0, damaged: 0, readFailures: 0, stuck: 0, unexpected: 0 },
      `FAULTS_SEED=${seed}: ${first}`,
    )
  })

  for (const carefulness of ['swallows failures', 'answers early'] as const) {
    it(`loses plants of a store that ${carefulness} (control)`, async (test) => {
      const verdict = await strikeAndReport(test, carefulness, 20, 101)
      assert.ok(verdict.lost > 0)
    })
  }

  it('invents plants of a store that refuses what it stored (control)', async (test) => {
    const verdict = await strikeAndReport(test, 'refuses what it stored', 5, 102)
    assert.ok(verdict.invented > 0)
  })
})
