import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Profile } from './conditions.ts'
import type { Run } from './simulate.ts'

/** Seeds to run until one fails. */
export interface Job {
  readonly first: number
  readonly count: number
  /** The name of a fault to put into the source. */
  readonly fault?: string
  /** The conditions of every seed, instead of those that it chooses. */
  readonly profile?: Profile
}

export interface Result {
  /** The hash of each run. */
  readonly hashes: string[]
  steps: number
  /** The seed that has failed, and its second run, which is traced. */
  failed: { readonly seed: number; readonly failure: string; readonly again: Run } | undefined
}

/** How many seeds a thread runs: it begins with fresh modules, and ends with its memory. */
const seedsPerThread = 500

/** Runs seeds in some threads at a time. */
export async function search(job: Job, threads: number): Promise<Result> {
  const found: Result = { hashes: [], steps: 0, failed: undefined }
  const end = job.first + job.count
  let next = job.first
  async function runSome(): Promise<void> {
    while (next < end && found.failed === undefined) {
      const workerData = { ...job, first: next, count: Math.min(seedsPerThread, end - next) }
      next += workerData.count
      const worker = new Worker(new URL('worker.ts', import.meta.url), { workerData })
      const [result] = (await once(worker, 'message')) as [Result]
      found.hashes.push(...result.hashes)
      found.steps += result.steps
      found.failed ??= result.failed
    }
  }
  await Promise.all(Array.from({ length: threads }, runSome))
  return found
}
