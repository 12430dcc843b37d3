import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Result, search } from './search.ts'

/** `SIM_SEED` runs one seed alone, and shows its whole trace. */
const { FAULTS, SIM_SEED: onlySeed } = process.env
const isLong = FAULTS === 'long'
/** The long form begins anywhere, so that each of its runs has other seeds. */
const [first, count] = isLong ? [Math.floor(Math.random() * 2 ** 31), 100_000] : [1, 200]
/** How much of a trace a failure shows. */
const lastLines = 60

describe('a simulation of processes, PostgreSQL, mirrors and receivers', () => {
  if (onlySeed !== undefined) {
    it(`keeps every promise with the seed ${onlySeed}`, async () => {
      const { failed } = await search({ first: Number(onlySeed), count: 1 }, 1)
      assert.ok(failed === undefined, explain(failed))
    })
    return
  }

  it(`keeps every promise in ${count} runs, and repeats them exactly`, async (test) => {
    test.diagnostic(`from the seed ${first}`)
    const { failed, hashes, steps } = await search({ first, count }, isLong ? 2 : 1)
    assert.ok(failed === undefined, explain(failed))
    test.diagnostic(`${hashes.length} seeds, ${steps} steps`)
    const [seen, again] = [new Set(hashes), await search({ first: first + 3, count: 5 }, 1)]
    assert.ok(hashes.length === count && seen.size > 0.99 * count)
    const others = again.hashes.filter((hash) => !seen.has(hash))
    assert.deepEqual(others, [])
  })
})

/** What is broken, how to replay it, and the end of the trace. */
function explain(failed: Result['failed']): string {
  if (failed === undefined) return ''
  const { trace } = failed.again
  return [
    failed.failure,
    `Replay it with SIM_SEED=${failed.seed} npx node --test test/sim/simulation.test.ts`,
    ...trace.slice(onlySeed === undefined ? -lastLines : 0),
  ].join('\n')
}
