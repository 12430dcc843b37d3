/** Where a commit runs: on the event loop, in the writer thread, or on the server. */
export type CommitPlace = 'main' | 'thread' | 'server'

/** Times by the place where they were taken. */
export type PlacedSeconds = readonly (readonly [CommitPlace, Histogram])[]

/** The queue of a batcher as it is now, and every batch that has run. */
export interface BatcherMeasures {
  readonly queuedItems: number
  readonly queuedBytes: number
  readonly batchItems: Histogram
  readonly batchSeconds: Histogram
}

/** The state of a store, and what it has done since it was opened. */
export interface StoreMeasures extends Omit<BatcherMeasures, 'queuedItems'> {
  readonly isUp: boolean
  readonly queuedWrites: number
  /** How long transactions took: their statements and their commit. */
  readonly commitSeconds: PlacedSeconds
  /** The part in which the log was written and synced; empty if the server does not tell. */
  readonly fsyncSeconds: PlacedSeconds
  /** Sizes on disk; empty if they are unknown. */
  readonly sizes: readonly (readonly ['data' | 'log', bytes: number])[]
}

/** Counts observations by size. Plain numbers: observing costs a few comparisons. */
export interface Histogram {
  readonly bounds: readonly number[]
  /** The observations up to each bound and beyond the one before; at the end, those beyond all. */
  readonly counts: number[]
  sum: number
}

export function buildHistogram(bounds: readonly number[]): Histogram {
  return { bounds, counts: Array.from({ length: bounds.length + 1 }, () => 0), sum: 0 }
}

export function observe(histogram: Histogram, value: number): void {
  const { bounds, counts } = histogram
  let bucket = 0
  while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++
  ;(counts[bucket] as number)++
  histogram.sum += value
}

/** From half a millisecond, which a create takes, to the longest that a request may take. */
export const secondsBounds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]
export const bytesBounds = [64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 16_777_216]
