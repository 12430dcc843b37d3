import type { Progress, SavedProgress } from '../store/receivers.ts'
import { type Job, toKeptDelivery } from './job.ts'

/** The work that was done for one receiver and is not saved yet. */
export interface Ledger {
  /** Times and the last failure. The position comes with each save. */
  times: Omit<Progress, 'position' | 'ahead'>
  /** Pauses the receiver with the next save. */
  pause: string | undefined
  /** Reports a gap with the next save. */
  gap: string | undefined
  /** Notes that a job was sent, whatever came of it. */
  addSent(job: Job): void
  /** Keeps a job beside the journal, if there is room. */
  keep(job: Job): void
  /** Counts a job that the store keeps already. */
  addKept(): void
  /** Whether the next save keeps a job. */
  hasKept(): boolean
  /** How many jobs were sent and are not saved. */
  countSent(): number
  /** Starts a save; undefined while another is under way. */
  take(
    reached: Pick<Progress, 'position' | 'ahead'>,
  ): Omit<SavedProgress, 'id' | 'epoch'> | undefined
  /** Ends the save. Returns the sent jobs of which the store knows now. */
  end(outcome: 'saved' | 'failed'): readonly Job[]
}

/** The content of one save. */
interface Save {
  readonly sent: Job[]
  readonly kept: Set<Job>
  readonly pause?: string | undefined
  readonly gap?: string | undefined
}

/** Builds the ledger of a receiver that keeps at most this many deliveries. */
export function buildLedger(times: Ledger['times'], maxKept: number): Ledger {
  let next: Save = { sent: [], kept: new Set() }
  let saving: Save | undefined
  let keptCount = 0
  let isPauseSaved = false

  function succeed({ sent, kept }: Save): readonly Job[] {
    // From now on the store has the plant.
    for (const job of kept) job.plant = undefined
    for (const { isKept, state } of sent) if (isKept && state !== 'waiting') keptCount--
    return sent
  }

  const ledger: Ledger = {
    times,
    pause: undefined,
    gap: undefined,

    addSent(job) {
      next.sent.push(job)
    },

    keep(job) {
      if (!job.isKept) {
        // A failure is never dropped: it does not hold up anything, and has a bound of its own.
        if (keptCount >= maxKept && job.state !== 'failed') return
        keptCount++
      }
      job.isKept = true
      next.kept.add(job)
      if (job.entry !== undefined) job.entry.isOpen = false
    },

    addKept() {
      keptCount++
    },

    hasKept: () => next.kept.size > 0,
    countSent: () => next.sent.length + (saving?.sent.length ?? 0),

    take({ position, ahead }) {
      if (saving !== undefined) return undefined
      // Once: an operator may have resumed the receiver since.
      const pause = isPauseSaved ? undefined : ledger.pause
      const { gap } = ledger
      saving = { ...next, pause, gap }
      next = { sent: [], kept: new Set() }
      return {
        progress: { position, ahead, ...ledger.times },
        kept: [...saving.kept].filter(({ state }) => state !== 'done').map(toKeptDelivery),
        done: saving.sent
          .filter(({ isKept, state }) => isKept && state === 'done')
          .map(({ position }) => position),
        pause,
        gap,
      }
    },

    end(outcome) {
      const ended: Save = saving ?? { sent: [], kept: new Set() }
      saving = undefined
      if (outcome === 'saved') {
        if (ended.gap !== undefined) ledger.gap = undefined
        isPauseSaved ||= ended.pause !== undefined
        return succeed(ended)
      }
      next = { sent: [...ended.sent, ...next.sent], kept: ended.kept.union(next.kept) }
      return []
    },
  }
  return ledger
}
