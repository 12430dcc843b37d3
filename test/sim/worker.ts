/** Runs seeds in a thread of its own, whose modules and clocks are those of the simulation. */
import { parentPort, workerData } from 'node:worker_threads'
import { faults } from './faults.ts'
import { installHooks } from './hooks.ts'
import type { Job, Result } from './search.ts'

const { first, count, fault, profile }: Job = workerData
installHooks(faults.find(({ name }) => name === fault))
// Every failover makes hundreds of errors that nobody reads.
Error.stackTraceLimit = 0
const { simulate } = await import('./simulate.ts')
const result: Result = { hashes: [], steps: 0, failed: undefined }
for (let seed = first; seed < first + count; seed++) {
  const { failure, hash, steps } = await simulate(seed, 'untraced', profile)
  result.hashes.push(hash)
  result.steps += steps
  if (failure === undefined) continue
  result.failed = { seed, failure, again: await simulate(seed, 'traced', profile) }
  break
}
parentPort?.postMessage(result)
