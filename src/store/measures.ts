import type { Histogram } from '../metrics/histogram.ts'

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
