import type { Job } from './job.ts'

/**
 * The jobs of a receiver, one chain for each plant. Only the first of a chain may be sent, so that
 * two changes of one plant are never on their way together.
 */
export interface Chains {
  /** Adds a job after those of its plant. */
  add(job: Job): void
  /** Whether a job may be sent now. */
  hasNext(): boolean
  /** The next job that may be sent. */
  peek(): Job | undefined
  /** Takes it. */
  next(): Job | undefined
  /** Puts back the first job of a chain, to be sent at its time. */
  putBack(job: Job): void
  /** Removes the first job of a chain. */
  remove(job: Job): void
  /** The jobs that wait for this one, which is the first of its chain. */
  listBehind(job: Job): readonly Job[]
  /** The last job of a plant. */
  last(plantId: bigint): Job | undefined
  close(): void
}

/** Opens the chains. `onReady` is called when the time of a job has come. */
export function openChains(onReady: () => void): Chains {
  const chains = new Map<bigint, Job[]>()
  const ready: Job[] = []
  const delayed = new Set<Job>()
  let timer: NodeJS.Timeout | undefined
  let timerAt = Infinity

  function putBack(job: Job): void {
    if (job.readyAt <= performance.now()) {
      makeReady(job)
      return
    }
    delayed.add(job)
    if (job.readyAt < timerAt) arm(job.readyAt)
  }

  /** Jobs that were tried before come first: their time has come. */
  function makeReady(job: Job): void {
    if (job.attempts > 0) ready.unshift(job)
    else ready.push(job)
  }

  function arm(at: number): void {
    clearTimeout(timer)
    timerAt = at
    timer = setTimeout(release, Math.max(at - performance.now(), 1)).unref()
  }

  function release(): void {
    const now = performance.now()
    let next = Infinity
    for (const job of delayed) {
      if (job.readyAt <= now) {
        delayed.delete(job)
        makeReady(job)
      } else next = Math.min(next, job.readyAt)
    }
    timerAt = Infinity
    if (next < Infinity) arm(next)
    onReady()
  }

  return {
    add(job) {
      const chain = chains.get(job.plantId)
      if (chain !== undefined) {
        chain.push(job)
        return
      }
      chains.set(job.plantId, [job])
      putBack(job)
    },

    hasNext: () => ready.length > 0,
    peek: () => ready[0],
    next: () => ready.shift(),
    putBack,

    remove(job) {
      const chain = chains.get(job.plantId) ?? []
      chain.shift()
      const [next] = chain
      if (next === undefined) chains.delete(job.plantId)
      else putBack(next)
    },

    listBehind: ({ plantId }) => chains.get(plantId)?.slice(1) ?? [],
    last: (plantId) => chains.get(plantId)?.at(-1),

    close() {
      clearTimeout(timer)
      chains.clear()
      delayed.clear()
      ready.length = 0
    },
  }
}
