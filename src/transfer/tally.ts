import { Failure } from '../contract/errors.ts'
import type { ConflictRule } from '../contract/parameters.ts'
import { type ImportReport, maxRefused, maxRefusedText } from '../contract/shapes.ts'
import type { ImportOutcome } from '../store/store.ts'
import type { Entry, Refusal } from './lines.ts'

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
  readonly report: ImportReport
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
  const counts = { stored: 0, alreadyThere: 0, replaced: 0, skipped: 0, conflicts: 0, invalid: 0 }
  return {
    report: { lines: 0, ...counts, refused: [], refusedInAll: 0 },
    lastLine: 0,
    failed: [],
  }
}

export function countStored(
  tally: Tally,
  entries: readonly Entry[],
  outcomes: readonly Outcome[],
): void {
  const { report } = tally
  for (const [index, { kind, refusal }] of outcomes.entries()) {
    report.lines++
    report[kind]++
    if (refusal === undefined) continue
    report.refusedInAll++
    const { refused } = report
    if (refused.length < maxRefused) refused.push(toRefused(entries[index] as Entry, refusal))
  }
  tally.lastLine = toLastLine(entries) ?? tally.lastLine
}

function toRefused(entry: Entry, { error, message }: Refusal): ImportReport['refused'][number] {
  const id = entry.plant === undefined ? entry.id : entry.plant.id
  const text = toBeginning(entry.text)
  return { line: entry.line, ...(id !== undefined && { id }), error, message, text }
}

/** The beginning of a record, without the end of its line and without half a character. */
function toBeginning(text: string): string {
  return text
    .replace(/\r$/, '')
    .slice(0, maxRefusedText)
    .replace(/[\ud800-\udbff]$/, '')
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

const words: Record<Outcome['kind'], string> = {
  stored: 'stored',
  alreadyThere: 'already there',
  replaced: 'replaced',
  skipped: 'skipped',
  conflicts: 'in conflict',
  invalid: 'invalid',
}

/** The counts as text: `3 stored, 1 in conflict`. */
export function describeCounts({ report }: Tally): string {
  return (Object.keys(words) as Outcome['kind'][])
    .filter((kind) => kind === 'stored' || report[kind] > 0)
    .map((kind) => `${report[kind].toLocaleString('en')} ${words[kind]}`)
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
