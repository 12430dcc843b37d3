import { limits } from '../contract/limits.ts'
import type { StoredPlant } from '../contract/shapes.ts'
import { type JournalRow, type Kind, toLine, toRow } from './row.ts'

/** Collects the effects of a commit as rows of the journal. */
export interface Recorder {
  record(kind: Kind, tokenId: string | undefined, plant: StoredPlant): void
  /** How many characters were recorded since the last `take`. */
  recorded(): number
  /** Returns the rows recorded since the last `take`. */
  take(): JournalRow[]
  /** Drops the rows recorded since the last `take`. */
  discard(): void
}

export function buildRecorder(): Recorder {
  let lines: string[] = []
  let full: JournalRow[] = []
  let recorded = 0

  function closeRow(): void {
    if (lines.length > 0) full.push(toRow(lines))
    lines = []
  }

  function discard(): void {
    lines = []
    full = []
    recorded = 0
  }

  return {
    record(kind, tokenId, plant) {
      const line = toLine(kind, tokenId, plant)
      lines.push(line)
      recorded += line.length
      // Splits large commits, so that a page of events needs about one row.
      if (recorded > limits.pageBytes * (full.length + 1)) closeRow()
    },
    recorded: () => recorded,
    take() {
      closeRow()
      const taken = full
      discard()
      return taken
    },
    discard,
  }
}
