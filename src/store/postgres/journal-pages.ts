import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '../../contract/limits.ts'
import {
  type Cursor,
  isReached,
  type Position,
  toCursor,
  toPosition,
} from '../../journal/position.ts'
import {
  type JournalEvent,
  type JournalPage,
  type JournalRow,
  type Reading,
  readRow,
} from '../../journal/row.ts'
import type { Horizon } from './horizon.ts'
import type { Sql } from './sql.ts'

/** A row of the journal, without its changes if they exceed its share of the page. */
interface SparseRow extends Omit<JournalRow, 'changes'> {
  readonly cursor: Cursor
  readonly bytes: number
  readonly changes: string | undefined
}

/** How many rows the first query for a page reads, and the most that any does. */
const firstRows = 32
const maxRows = 1_000
/** How often a page that would be empty polls for transactions in flight to end. */
const maxPolls = 5
const pollMs = 5

/** A row as the server sends it. Without a `seq`, the journal is empty. */
interface SelectedRow {
  readonly journalId: string | null
  readonly seq: string | null
  readonly nonce: number
  readonly count: number
  readonly at: string
  readonly bytes: number
  readonly changes: string | null
}

/** Reads a page of settled changes. */
export async function readJournal(
  sql: Sql,
  horizon: Horizon,
  after: Position | 'oldest',
  limit: number,
): Promise<JournalPage | 'gone' | 'off'> {
  const asked = after === 'oldest' ? after : toCursor(after)
  if (asked === undefined) return 'gone'
  const reading: Reading = { events: [], limit, bytes: 0 }
  const { events } = reading
  let begin: Cursor | undefined
  let cursor: Cursor | 'oldest' = asked
  let rowsRead = 0
  for (let polls = 1; ; ) {
    const count = toRowCount(limit - events.length, events.length, rowsRead)
    const settledBefore = horizon.last()
    const rows = await selectRows(sql, cursor, count)
    if (rows === 'off') return rows
    const from = toBeginning(rows, cursor)
    // If a trim removed the rest meanwhile, the changes so far are the page.
    if (from === undefined) return begin === undefined ? 'gone' : toPage(begin, events, false)
    // A client has a position only if its row is settled.
    const known = cursor === 'oldest' ? settledBefore : Math.max(settledBefore ?? 0, from.seq)
    begin ??= from
    cursor = from
    const seqs = rows.map((row) => row.cursor.seq)
    const settled = rows.slice(0, horizon.countSettled(seqs, known))
    const fitting = toFitting(
      settled,
      from,
      limit - events.length,
      limits.pageBytes - reading.bytes,
    )
    const texts = await selectLeftOut(sql, fitting)
    for (const row of fitting) {
      const changes = row.changes ?? texts.get(row.cursor.seq)
      if (changes === undefined) return toPage(begin, events, false)
      const here = row.cursor.seq === from.seq ? from : row.cursor
      const isDone = here.index === row.count || readRow({ at: row.at, changes }, here, reading)
      if (!isDone) return toPage(begin, events, false)
      cursor = { ...row.cursor, index: row.count }
    }
    rowsRead += fitting.length
    const isFull = events.length === limit || fitting.length < settled.length
    if (isFull) return toPage(begin, events, false)
    if (settled.length < rows.length) {
      // An earlier row may still be in flight.
      if (await horizon.settle(sql)) continue
      if (events.length > 0 || polls++ === maxPolls) return toPage(begin, events, true)
      await sleep(pollMs)
    } else if (rows.length < count) return toPage(begin, events, true)
  }
}

/** Estimates how many rows have this many events, from the rows read so far. */
function toRowCount(wanted: number, eventsRead: number, rowsRead: number): number {
  if (eventsRead === 0) return Math.min(wanted + 1, firstRows)
  return Math.min(maxRows, Math.ceil((wanted * rowsRead) / eventsRead) + 1)
}

/** The cursor at which a page begins; undefined if it is not in the first row. */
function toBeginning([first]: readonly SparseRow[], wanted: Cursor | 'oldest'): Cursor | undefined {
  if (first === undefined || wanted === 'oldest') return first?.cursor
  const end = { ...first.cursor, index: first.count }
  return wanted.journalId === end.journalId && isReached(wanted, end) ? wanted : undefined
}

/** The first rows that fit into a page: at least one, whatever its size. */
function toFitting(
  rows: readonly SparseRow[],
  from: Cursor,
  limit: number,
  maxBytes: number,
): SparseRow[] {
  let events = -from.index
  let bytes = 0
  const end = rows.findIndex((row) => {
    const isFull = events >= limit || (events > 0 && bytes + row.bytes > maxBytes)
    events += row.count
    bytes += row.bytes
    return isFull
  })
  return end === -1 ? [...rows] : rows.slice(0, end)
}

function toPage(begin: Cursor, events: readonly JournalEvent[], isLast: boolean): JournalPage {
  const start = toPosition(begin)
  return { begin: start, events, end: events.at(-1)?.position ?? start, isLast }
}

/** Reads rows from a cursor on, as `SparseRow`s. */
async function selectRows(
  sql: Sql,
  from: Cursor | 'oldest',
  limit: number,
): Promise<SparseRow[] | 'off'> {
  const first = from === 'oldest' ? null : from.seq
  const index = from === 'oldest' ? 0 : from.index
  const share = Math.floor(limits.pageBytes / limit)
  const rows = await sql<SelectedRow[]>`
    SELECT life.id AS "journalId", row.seq, row.nonce, row.count, row.at, row.bytes,
      CASE WHEN row.bytes = 0 THEN '' WHEN row.bytes <= ${share} THEN row.changes END AS changes
    FROM plant_store.journal_life AS life LEFT JOIN LATERAL (
      SELECT seq, nonce, count, at, changes,
        CASE WHEN seq = ${first}::bigint AND count = ${index}::bigint THEN 0
          ELSE pg_catalog.octet_length(changes) END AS bytes
      FROM plant_store.journal WHERE seq >= coalesce(${first}::bigint, life.since)
      ORDER BY seq LIMIT ${limit}) AS row ON TRUE
    ORDER BY row.seq`
  const found: SparseRow[] = []
  for (const { journalId, seq, nonce, count, at, bytes, changes } of rows) {
    if (journalId === null) return 'off'
    if (seq === null) return []
    const cursor = { journalId, seq: Number(seq), nonce, index: 0 }
    found.push({ cursor, count, bytes, nonce, at: Number(at), changes: changes ?? undefined })
  }
  return found
}

/** The changes that were left out of these rows, by `seq`. */
async function selectLeftOut(sql: Sql, rows: readonly SparseRow[]): Promise<Map<number, string>> {
  const seqs = rows.filter(({ changes }) => changes === undefined).map(({ cursor }) => cursor.seq)
  if (seqs.length === 0) return new Map()
  const found = await sql<{ seq: string; changes: string }[]>`
    SELECT seq, changes FROM plant_store.journal
    WHERE seq = ANY(${seqs}::bigint[])`
  return new Map(found.map(({ seq, changes }) => [Number(seq), changes]))
}
