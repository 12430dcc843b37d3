/** The current queue of a batcher, and every batch so far. */
export interface BatcherMeasures {
  readonly queuedWrites: number
  readonly batchItems: Histogram
  readonly batchSeconds: Histogram
}

/** The state of a store, and its work since it was opened. */
export interface StoreMeasures extends BatcherMeasures {
  readonly isUp: boolean
  /** The duration of transactions: their statements and their commit. */
  readonly commitSeconds: Histogram
  /** The part that wrote and synced the WAL; undefined if the server does not report it. */
  readonly fsyncSeconds: Histogram | undefined
  /** Sizes on disk; empty if they are unknown. */
  readonly sizes: readonly (readonly ['data' | 'log', bytes: number])[]
}

/** A histogram of plain numbers: an observation costs a few comparisons. */
export interface Histogram {
  readonly bounds: readonly number[]
  /** Observations per bucket: up to each bound, and at the end those above all bounds. */
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

/** From half a millisecond, the time of a create, to the longest time of a request. */
export const secondsBounds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]
export const bytesBounds = [64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 16_777_216]
