import { toText } from '../progress.ts'
import type { Outcome } from './target.ts'

/** What an import has done so far. */
export interface Report {
  readonly startedAt: number
  /** How many lines had each outcome. */
  readonly counts: Record<Outcome['is'], number>
  /** The last line whose outcome is known. */
  lastLine: number
}

export function newReport(): Report {
  return {
    startedAt: performance.now(),
    counts: { stored: 0, 'already there': 0, replaced: 0, skipped: 0, conflict: 0, invalid: 0 },
    lastLine: 0,
  }
}

/** How many lines were rejected. */
export function countRejected({ counts: { conflict, invalid } }: Report): number {
  return conflict + invalid
}

const words: Record<Outcome['is'], string> = {
  stored: 'stored',
  'already there': 'already there',
  replaced: 'replaced',
  skipped: 'skipped',
  conflict: 'in conflict',
  invalid: 'invalid',
}

/** The last line of an import: the number of lines with each outcome. */
export function describeReport(
  report: Report,
  target: string,
  { isWhole, rejects }: { readonly isWhole: boolean; readonly rejects: string | undefined },
): string {
  const { counts } = report
  const seconds = (performance.now() - report.startedAt) / 1000
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const kinds = (Object.keys(counts) as Outcome['is'][])
    .filter((kind) => kind === 'stored' || counts[kind] > 0)
    .map((kind) => `${toText(counts[kind])} ${words[kind]}`)
  const hasFile = rejects !== undefined && countRejected(report) > 0
  const hint = hasFile ? ` The rejected lines are in ${rejects}.` : ''
  const speed = `${seconds.toFixed(1)} s, ${toText(Math.round(all / seconds))}/s`
  return `Imported ${isWhole ? '' : 'so far '}into ${target}: ${kinds.join(', ')} (${speed}).${hint}`
}
