import { countLines, countRefused, describeCounts, type Tally } from '../../transfer/tally.ts'
import { toText } from '../progress.ts'

interface ReportOptions {
  readonly isWhole: boolean
  readonly rejects: string | undefined
  readonly startedAt: number
}

/** The last line of an import: the number of lines with each outcome. */
export function describeReport(
  tally: Tally,
  target: string,
  { isWhole, rejects, startedAt }: ReportOptions,
): string {
  const seconds = (performance.now() - startedAt) / 1000
  const hasFile = rejects !== undefined && countRefused(tally) > 0
  const hint = hasFile ? ` The rejected lines are in ${rejects}.` : ''
  const speed = `${seconds.toFixed(1)} s, ${toText(Math.round(countLines(tally) / seconds))}/s`
  return `Imported ${isWhole ? '' : 'so far '}into ${target}: ${describeCounts(tally)} (${speed}).${hint}`
}
