import { planTrim, rowsPerTrim, type Stretch, type TrimRow, toStretch } from '../journal/trim.ts'
import { type Run, type Steps, sql } from './steps.ts'

export type JournalUpkeep = ReturnType<typeof buildJournalUpkeep>

/** Builds the part of the store that measures and shortens the journal. */
export function buildJournalUpkeep(read: Run, write: Run) {
  return {
    /** Deletes some of the changes from before this time. Returns whether none are left. */
    trimJournal: (before: number) => write(() => trim(before)),
    /** Measures the next rows of the journal after one; undefined if there are none. */
    measureJournal: (after: number) => read(() => measure(after)),
    /** Deletes changes regardless of age, up to a row; the last row stays. Returns their number. */
    dropChanges: (upTo: number) => write(() => deleteUpTo(upTo)),
  }
}

function* trim(before: number): Steps<boolean> {
  const { upTo, isDone } = planTrim(yield* selectAfter(0), before)
  if (upTo !== undefined) yield* deleteUpTo(upTo)
  return isDone
}

function* measure(after: number): Steps<Stretch | undefined> {
  return toStretch(yield* selectAfter(after))
}

/** Neither engine reads the texts for their length. */
function* selectAfter(seq: number): Steps<TrimRow[]> {
  const rows = yield sql`
    SELECT seq, at, octet_length(changes) AS bytes FROM plant_store.journal
    WHERE seq > ${seq} ORDER BY seq LIMIT ${rowsPerTrim}`
  return rows.map(({ seq, at, bytes }) => [Number(seq), Number(at), Number(bytes)])
}

/** Another process may have deleted some of the rows. */
function* deleteUpTo(seq: number): Steps<number> {
  const rows = yield sql`
    DELETE FROM plant_store.journal
    WHERE seq <= ${seq} AND seq < (SELECT max(seq) FROM plant_store.journal) RETURNING count`
  return rows.reduce((sum, { count }) => sum + Number(count), 0)
}
