import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { faults } from '../sim/faults.ts'
import { search } from '../sim/search.ts'
import { isLong } from './lab/scale.ts'

/** Within this many seeds, every fault must be found. The long form begins with any of them. */
const mostSeeds = 2_000
const first = isLong ? Math.floor(Math.random() * 2 ** 31) : 1

describe('the simulation of test/sim', { concurrency: 2 }, () => {
  for (const { name: fault, profile } of faults) {
    it(`finds ${fault}, and finds it again with the same seed (control)`, async (test) => {
      const job = { first, count: mostSeeds, fault, ...(!isLong && { profile }) }
      const { failed, hashes } = await search(job, 1)
      assert.ok(failed, `not found in ${mostSeeds} seeds`)
      test.diagnostic(`after ${hashes.length} seeds: ${failed.failure}`)
      assert.doesNotMatch(failed.failure, /test\/sim does not know/)
      assert.equal(failed.again.failure, failed.failure)
      assert.equal(failed.again.hash, hashes.at(-1))
    })
  }
})
