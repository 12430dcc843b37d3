import { rowOverhead, rowsPerStretch, type Stretch } from '../journal/bound.ts'
import { planDrop, planTrim, rowsPerTrim, type TrimRow } from '../journal/trim.ts'
import { type Run, type Steps, sql } from './steps.ts'
import type { Store } from './store.ts'

/** Builds the part of the store that measures and shortens the journal. */
export function buildJournalUpkeep(
  read: Run,
  write: Run,
): Pick<Store, 'trimJournal' | 'measureJournal' | 'dropChanges'> {
  return {
    trimJournal: (before) => write(() => trim(before)),
    measureJournal: (after, upTo) => read(() => measure(after, upTo)),
    dropChanges: (first, bytes) => write(() => drop(first, bytes)),
  }
}

/** Deletes some rows from before this time. Returns whether none are left. */
function* trim(before: number): Steps<boolean> {
  const { upTo, isDone } = planTrim(yield* selectOldest(), before)
  yield* deleteUpTo(upTo)
  return isDone
}

/** Deletes some of the oldest rows regardless of age. Returns how many changes they had. */
function* drop(first: number, bytes: number): Steps<number> {
  // Counts what is deleted here: another process may drop the same rows at the same moment.
  return yield* deleteUpTo(planDrop(yield* selectOldest(), first, bytes).upTo)
}

function* selectOldest(): Steps<TrimRow[]> {
  const rows = yield sql`
    SELECT seq, at, octet_length(changes) AS bytes, count FROM plant_store.journal
    ORDER BY seq LIMIT ${rowsPerTrim}`
  return rows.map(({ seq, at, bytes, count }) => [
    Number(seq),
    Number(at),
    Number(bytes),
    Number(count),
  ])
}

/** Returns how many changes the deleted rows had. */
function* deleteUpTo(seq: number | undefined): Steps<number> {
  if (seq === undefined) return 0
  const rows = yield sql`DELETE FROM plant_store.journal WHERE seq <= ${seq} RETURNING count`
  return rows.reduce((sum, { count }) => sum + Number(count), 0)
}

/**
 * Measures rows with `after < seq <= upTo`. Neither engine reads the texts for their length, SQLite
 * because it is taken in the subquery.
 */
function* measure(after: number, upTo: number): Steps<Stretch> {
  const [row] = yield sql`
    SELECT count(*) AS rows, coalesce(sum(bytes), 0) AS bytes, min(seq) AS first, max(seq) AS last
    FROM (SELECT seq, octet_length(changes) AS bytes FROM plant_store.journal
      WHERE seq > ${after} AND seq <= ${upTo} ORDER BY seq LIMIT ${rowsPerStretch}) AS stretch`
  const [rows, first, last] = [Number(row?.rows), Number(row?.first), Number(row?.last)]
  return { rows, bytes: Number(row?.bytes) + rows * rowOverhead, first, last }
}
