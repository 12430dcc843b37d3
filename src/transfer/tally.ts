import { Failure } from '../contract/errors.ts'
import type { ConflictRule } from '../contract/parameters.ts'
import type { ImportOutcome } from '../store/store.ts'
import type { Entry, Refusal } from './entry.ts'

/** The outcome of an entry. A refusal says why it was not taken. */
export interface Outcome {
  readonly kind: 'stored' | 'alreadyThere' | 'replaced' | 'skipped' | 'conflicts' | 'invalid'
  readonly refusal?: Refusal
}

/** The outcome of a plant under a conflict rule. */
export function toOutcome(outcome: ImportOutcome, rule: ConflictRule): Outcome {
  if (outcome === 'already there') return { kind: 'alreadyThere' }
  if (outcome !== 'conflict') return { kind: outcome }
  return rule === 'skip' ? { kind: 'skipped' } : conflict
}

const conflict: Outcome = {
  kind: 'conflicts',
  refusal: {
    error: 40900,
    message: 'The store has a plant with this id and different content, which was kept.',
  },
}

/** The outcomes of an import so far. They are accurate at any moment, however it ends. */
export interface Tally {
  readonly counts: Record<Outcome['kind'], number>
  /** The last line that was stored or refused, or that failed. */
  lastLine: number
  /** Lines that failed, and whether some of them may be stored anyway. */
  readonly failed: FailedLines[]
}

interface FailedLines {
  readonly first: number
  readonly last: number
  readonly mayBeStored: boolean
}

export function newTally(): Tally {
  return {
    counts: { stored: 0, alreadyThere: 0, replaced: 0, skipped: 0, conflicts: 0, invalid: 0 },
    lastLine: 0,
    failed: [],
  }
}

export function countStored(
  tally: Tally,
  entries: readonly Entry[],
  outcomes: readonly Outcome[],
): void {
  for (const { kind } of outcomes) tally.counts[kind]++
  tally.lastLine = toLastLine(entries) ?? tally.lastLine
}

export function countFailed(tally: Tally, entries: readonly Entry[], error: unknown): void {
  const [first] = entries
  if (first === undefined) return
  const last = toLastLine(entries) ?? first.line
  const mayBeStored = !(error instanceof Failure) || error.number === 50400
  tally.failed.push({ first: first.line, last, mayBeStored })
  tally.lastLine = last
}

/** The last line of the last entry, which may span several. */
function toLastLine(entries: readonly Entry[]): number | undefined {
  const last = entries.at(-1)
  return last && last.line + last.text.split('\n').length - 1
}

/** How many lines were refused. */
export function countRefused({ counts: { conflicts, invalid } }: Tally): number {
  return conflicts + invalid
}

/** How many lines had an outcome. */
export function countLines({ counts }: Tally): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

const words: Record<Outcome['kind'], string> = {
  stored: 'stored',
  alreadyThere: 'already there',
  replaced: 'replaced',
  skipped: 'skipped',
  conflicts: 'in conflict',
  invalid: 'invalid',
}

/** The counts as text: `3 stored, 1 in conflict`. */
export function describeCounts({ counts }: Tally): string {
  return (Object.keys(counts) as Outcome['kind'][])
    .filter((kind) => kind === 'stored' || counts[kind] > 0)
    .map((kind) => `${counts[kind].toLocaleString('en')} ${words[kind]}`)
    .join(', ')
}

/** The lines that an import which ended early has not stored, in sentences. */
export function describeRest(tally: Tally): string {
  const { lastLine } = tally
  if (lastLine === 0) return 'Nothing was imported.'
  return `${describeFailed(tally)}Lines after ${lastLine} were not imported.`
}

/** The lines that failed, in a sentence for each batch. */
export function describeFailed({ failed }: Tally): string {
  const sentences = failed.map(({ first, last, mayBeStored }) => {
    const lines = first === last ? `Line ${first}` : `Lines ${first} to ${last}`
    const was = first === last ? 'was' : 'were'
    return `${lines} ${mayBeStored ? 'may or may not be' : `${was} not`} stored. `
  })
  return sentences.join('')
}
