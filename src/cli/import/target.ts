import type { BatchBounds, Put } from '../../transfer/batches.ts'

/** Where an import puts its plants. */
export interface Target {
  /** The store or the service, as messages name it. */
  readonly name: string
  readonly bounds: BatchBounds
  readonly put: Put
  close(): Promise<void>
}

/** The target of a dry run: takes every plant, and stores none. */
export const dryTarget: Target = {
  name: 'nothing',
  bounds: { entries: 2_000, characters: 256 * 1024, inFlight: 1 },
  put: async (plants) => plants.map(() => ({ is: 'stored' })),
  async close() {},
}
