import type { NewPlant } from '../contract/shapes.ts'
import type { Entry } from './entry.ts'
import type { Outcome } from './outcome.ts'

/** How many batches of one import are stored at a time. */
const maxInFlight = 2

/** Groups entries into batches. If the source fails, the entries before that come first. */
export async function* toBatches(
  groups: AsyncIterable<Entry[]>,
  maxEntries: number,
): AsyncGenerator<Entry[]> {
  let batch: Entry[] = []
  try {
    for await (const entries of groups) {
      for (const entry of entries) {
        batch.push(entry)
        if (batch.length < maxEntries) continue
        yield batch
        batch = []
      }
    }
  } catch (error) {
    if (batch.length > 0) yield batch
    throw error
  }
  if (batch.length > 0) yield batch
}

/** Puts the plants of a batch somewhere and returns the outcome of each, in order. */
export type PutBatch = (plants: readonly NewPlant[]) => Promise<Outcome[]>

/** Takes the outcome of each batch, in the order of the file. */
interface BatchListener {
  onSettled(entries: readonly Entry[], outcomes: readonly Outcome[]): Promise<void> | void
  onFailed(entries: readonly Entry[], error: unknown): void
}

/** A batch whose outcomes are not known yet. */
interface Batch {
  readonly entries: readonly Entry[]
  readonly ids: ReadonlySet<bigint>
  readonly outcomes: Promise<Outcome[]>
}

/**
 * Stores batches, several at a time, until the source ends or the signal aborts. However it ends,
 * the listener is told about every batch that was begun.
 */
export async function putBatches(
  batches: AsyncIterable<Entry[]>,
  put: PutBatch,
  signal: AbortSignal,
  listener: BatchListener,
): Promise<void> {
  const inFlight: Batch[] = []

  async function settleOldest(): Promise<void> {
    const { entries, outcomes } = inFlight.shift() as Batch
    await listener.onSettled(entries, toEntryOutcomes(entries, await known(entries, outcomes)))
  }

  async function known(entries: readonly Entry[], outcomes: Promise<Outcome[]>) {
    try {
      return await outcomes
    } catch (error) {
      listener.onFailed(entries, error)
      throw error
    }
  }

  /** Batches that share an id run one after the other: their order decides which plant stays. */
  function mustWait(ids: ReadonlySet<bigint>): boolean {
    return (
      inFlight.length === maxInFlight || inFlight.some((batch) => !batch.ids.isDisjointFrom(ids))
    )
  }

  try {
    for await (const entries of batches) {
      const plants = entries.flatMap(({ plant }) => plant ?? [])
      const ids = new Set(plants.map(({ id }) => id))
      while (mustWait(ids)) await settleOldest()
      if (signal.aborted) break
      const outcomes = plants.length === 0 ? Promise.resolve([]) : put(plants)
      // The batch is awaited when its turn comes; until then, a rejection is not unhandled.
      outcomes.catch(() => {})
      inFlight.push({ entries, ids, outcomes })
    }
    while (inFlight.length > 0) await settleOldest()
  } catch (error) {
    while (inFlight.length > 0) await settleOldest().catch(() => {})
    throw error
  }
}

/** The outcome of each entry: what became of its plant, or its refusal. */
function toEntryOutcomes(entries: readonly Entry[], outcomes: readonly Outcome[]): Outcome[] {
  const ofPlants = outcomes.values()
  return entries.map(({ refusal }) => {
    const outcome =
      refusal === undefined ? ofPlants.next().value : { kind: 'invalid' as const, refusal }
    if (outcome === undefined) throw new Error('a plant has no outcome')
    return outcome
  })
}
