import type { Entry } from '../../transfer/entry.ts'
import type { Outcome, Target } from './target.ts'

const maxBatchEntries = 2_000
const maxBatchCharacters = 256 * 1024
const maxInFlight = 2

/** Groups entries into batches, bounded in entries and in text. */
export async function* toBatches(groups: AsyncIterable<Entry[]>): AsyncGenerator<Entry[]> {
  let batch: Entry[] = []
  let characters = 0
  for await (const entries of groups) {
    for (const entry of entries) {
      batch.push(entry)
      characters += entry.text.length
      if (batch.length < maxBatchEntries && characters < maxBatchCharacters) continue
      yield batch
      batch = []
      characters = 0
    }
  }
  if (batch.length > 0) yield batch
}

/** A batch that the target has not answered yet. */
interface Batch {
  readonly entries: readonly Entry[]
  readonly ids: ReadonlySet<bigint>
  readonly outcomes: Promise<Outcome[]>
}

/**
 * Puts batches into the target, two at a time, and hands on each entry with its outcome, in the
 * order of the file. When the target fails, it waits for the other batch before it throws.
 */
export async function putBatches(
  batches: AsyncIterable<Entry[]>,
  target: Target,
  signal: AbortSignal,
  onSettled: (entries: readonly Entry[], outcomes: readonly Outcome[]) => Promise<void>,
): Promise<void> {
  const inFlight: Batch[] = []

  async function settleOldest(): Promise<void> {
    const { entries, outcomes } = inFlight.shift() as Batch
    await onSettled(entries, toEntryOutcomes(entries, await outcomes))
  }

  try {
    for await (const entries of batches) {
      const plants = entries.flatMap(({ plant }) => plant ?? [])
      const ids = new Set(plants.map(({ id }) => id))
      while (mustWait(ids, inFlight)) await settleOldest()
      if (signal.aborted) break
      const outcomes = target.put(plants)
      // The batch is awaited when its turn comes; until then, a rejection is not unhandled.
      outcomes.catch(() => {})
      inFlight.push({ entries, ids, outcomes })
    }
    while (inFlight.length > 0) await settleOldest()
  } finally {
    await Promise.allSettled(inFlight.map(({ outcomes }) => outcomes))
  }
}

/**
 * Two batches that share an id are never in flight together: their order decides which plant stays.
 */
function mustWait(ids: ReadonlySet<bigint>, inFlight: readonly Batch[]): boolean {
  return inFlight.length === maxInFlight || inFlight.some((batch) => !batch.ids.isDisjointFrom(ids))
}

/** The outcome of each entry: that of its plant, or the reason why it has none. */
function toEntryOutcomes(entries: readonly Entry[], outcomes: readonly Outcome[]): Outcome[] {
  const ofPlants = outcomes.values()
  return entries.map(({ plant, reason }) => {
    const outcome = plant === undefined ? { is: 'invalid' as const, reason } : ofPlants.next().value
    if (outcome === undefined) throw new Error('the target gave no outcome for a plant')
    return outcome
  })
}
