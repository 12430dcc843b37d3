import type { Put } from '../../transfer/batches.ts'

/** Where an import puts its plants. */
export interface Target {
  /** The store or the service, as messages name it. */
  readonly name: string
  readonly put: Put
  close(): Promise<void>
}
