import type { NewPlant } from '../../contract/shapes.ts'
import type { ImportOutcome } from '../../store/store.ts'

export type OnConflictFlag = 'fail' | 'skip' | 'replace'

/** What happened to a plant. A plant with a reason was rejected. */
export interface Outcome {
  readonly is: Exclude<ImportOutcome, 'conflict'> | 'skipped' | 'conflict' | 'invalid'
  readonly reason?: string
}

/** Where an import puts its plants. */
export interface Target {
  /** The store or the service, as messages name it. */
  readonly name: string
  /** Stores plants and answers the outcome of each, in order. */
  put(plants: readonly NewPlant[]): Promise<Outcome[]>
  close(): Promise<void>
}

/** The outcome of a plant, under the rule for ids that belong to a different plant. */
export function toOutcome(outcome: ImportOutcome, onConflict: OnConflictFlag): Outcome {
  if (outcome !== 'conflict') return plainOutcomes[outcome]
  return onConflict === 'skip' ? skipped : conflict
}

const plainOutcomes = {
  stored: { is: 'stored' },
  'already there': { is: 'already there' },
  replaced: { is: 'replaced' },
} as const
const skipped: Outcome = { is: 'skipped' }
const conflict: Outcome = {
  is: 'conflict',
  reason: 'The store has a plant with this id and different content, which was kept.',
}
