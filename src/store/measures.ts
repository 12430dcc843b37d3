import type { Histogram } from '../metrics/histogram.ts'

/** Where a commit runs: on the event loop, in the writer thread, or on the server. */
export type CommitPlace = 'main' | 'thread' | 'server'

/** The state of a store, and what it has done since it was opened. */
export interface StoreMeasures {
  readonly isUp: boolean
  readonly queuedWrites: number
  readonly queuedBytes: number
  readonly batchItems: Histogram
  readonly batchSeconds: Histogram
  /** How long commits took, with their fsync. */
  readonly commitSeconds: readonly (readonly [CommitPlace, Histogram])[]
  /** Sizes on disk; empty if they are unknown. */
  readonly sizes: readonly (readonly ['data' | 'log', bytes: number])[]
}
