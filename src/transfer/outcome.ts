import type { ConflictRule } from '../contract/parameters.ts'
import type { ImportOutcome, OnConflict } from '../store/store.ts'
import type { Refusal } from './lines.ts'

/** The outcome of a line. A refusal says why it was not taken. */
export interface Outcome {
  readonly kind: 'stored' | 'alreadyThere' | 'replaced' | 'skipped' | 'conflicts' | 'invalid'
  readonly refusal?: Refusal
}

/** One rule replaces the stored plant. The others keep it, and differ in what they report. */
export function toOnConflict(rule: ConflictRule): OnConflict {
  return rule === 'replace' ? 'replace' : 'keep'
}

/** The outcome of a plant under a conflict rule. */
export function toOutcome(outcome: ImportOutcome, rule: ConflictRule): Outcome {
  if (outcome !== 'conflict') return plainOutcomes[outcome]
  return rule === 'skip' ? skipped : conflict
}

const plainOutcomes = {
  stored: { kind: 'stored' },
  'already there': { kind: 'alreadyThere' },
  replaced: { kind: 'replaced' },
} as const satisfies Record<string, Outcome>
const skipped: Outcome = { kind: 'skipped' }
const conflict: Outcome = {
  kind: 'conflicts',
  refusal: {
    error: 40900,
    message: 'The store has a plant with this id and different content, which was kept.',
  },
}
