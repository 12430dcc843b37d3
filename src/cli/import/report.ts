import { countLines, countRefused, describeCounts, type Tally } from '../../transfer/tally.ts'
import { toText } from '../progress.ts'

interface ReportOptions {
  readonly state: 'whole' | 'so far' | 'dry run'
  readonly rejects: string | undefined
  readonly startedAt: number
}

/** The last line of an import: the number of lines with each outcome. */
export function describeReport(
  tally: Tally,
  target: string,
  { state, rejects, startedAt }: ReportOptions,
): string {
  const seconds = (performance.now() - startedAt) / 1000
  const hasFile = rejects !== undefined && countRefused(tally) > 0
  const hint = hasFile ? ` The rejected lines are in ${rejects}.` : ''
  const speed = `(${seconds.toFixed(1)} s, ${toText(Math.round(countLines(tally) / seconds))}/s)`
  if (state === 'dry run') {
    const { stored, invalid } = tally.counts
    return `Checked, and stored nothing: ${toText(stored)} valid, ${toText(invalid)} invalid ${speed}.${hint}`
  }
  const soFar = state === 'so far' ? 'so far ' : ''
  return `Imported ${soFar}into ${target}: ${describeCounts(tally)} ${speed}.${hint}`
}
