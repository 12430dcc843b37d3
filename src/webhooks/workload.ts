import type { Delivery } from '../store/receivers.ts'
import type { JournalEvent } from '../store/store.ts'
import { type Chains, openChains } from './chains.ts'
import { type Job, toJob, toKeptJob } from './job.ts'
import type { Ledger } from './ledger.ts'
import type { Entry } from './window.ts'

/** Every change that one receiver has yet to get and that was read. */
export interface Workload extends Pick<Chains, 'hasNext' | 'putBack' | 'close'> {
  /** Adds a change of the journal. Behind one that the store keeps, it is kept as well. */
  add(event: JournalEvent, entry: Entry): void
  /** Adds deliveries that the store keeps, except those that are known. */
  addWaiting(waiting: readonly Delivery[]): void
  has(position: string): boolean
  /** Whether the next job was never sent. */
  isNextNew(): boolean
  /** Takes the next job to send. */
  next(): Job
  /** Keeps a change beside the journal, so that it does not hold up the position. */
  keep(position: string): void
  /** Goes on with what comes after these jobs, of which the store knows now. */
  endJobs(jobs: readonly Job[]): void
  /** How many changes wait for their first attempt, and only in memory. */
  countUnsent(): number
}

export function openWorkload(
  ledger: Pick<Ledger, 'keep' | 'addKept'>,
  onReady: () => void,
): Workload {
  const jobs = new Map<string, Job>()
  const chains = openChains(onReady)
  let unsent = 0

  function addJob(job: Job): void {
    jobs.set(job.position, job)
    chains.add(job)
  }

  function keepJob(job: Job): void {
    ledger.keep(job)
    if (job.isKept) countAsSent(job)
  }

  /** Keeps the first of these jobs, as many as there is room for. */
  function keepInOrder(jobs: readonly Job[]): void {
    for (const job of jobs) {
      keepJob(job)
      if (!job.isKept) return
    }
  }

  function countAsSent(job: Job): void {
    if (job.isUnsent) unsent--
    job.isUnsent = false
  }

  return {
    add(event, entry) {
      const job = toJob(event, entry)
      // What is kept comes first after a restart, so nothing may be kept behind one that is not.
      const isBehindKept = chains.last(job.plantId)?.isKept
      unsent++
      addJob(job)
      if (isBehindKept) keepJob(job)
    },

    addWaiting(waiting) {
      for (const delivery of waiting) {
        if (jobs.has(delivery.position)) continue
        ledger.addKept()
        addJob(toKeptJob(delivery, Date.now()))
      }
    },

    has: (position) => jobs.has(position),

    isNextNew: () => chains.peek()?.attempts === 0,

    next() {
      const job = chains.next() as Job
      countAsSent(job)
      return job
    },

    keep(position) {
      const job = jobs.get(position)
      if (job !== undefined) keepJob(job)
    },

    endJobs(ended) {
      for (const job of ended) {
        if (job.state === 'waiting') {
          if (job.isKept) keepInOrder(chains.listBehind(job))
          chains.putBack(job)
        } else {
          jobs.delete(job.position)
          chains.remove(job)
        }
      }
    },

    countUnsent: () => unsent,
    hasNext: chains.hasNext,
    putBack: chains.putBack,
    close: chains.close,
  }
}
