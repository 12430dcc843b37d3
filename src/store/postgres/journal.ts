import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '../../contract/limits.ts'
import { type Cursor, type Position, toCursor, toPosition } from '../../journal/position.ts'
import {
  type Journaling,
  type JournalPage,
  newJournalId,
  newNonce,
  type PageRow,
  toBeginning,
  toPage,
} from '../../journal/row.ts'
import { unsettled } from '../failures.ts'
import { UnusableStore } from '../store.ts'
import { codeOf } from './failures.ts'
import type { Horizon } from './horizon.ts'
import { inTransaction, type Query, type Sql } from './sql.ts'

/** How often readers poll for transactions in flight to end. */
const pollMs = 5
/** How often a page that would be empty polls. */
const maxPolls = 5
/** How long readers poll for a position that cannot be told yet: the end, or the beginning. */
const settleTimeoutMs = 1_000
/** How long switching the journal on waits for transactions in flight. Writes queue behind it. */
const switchTimeoutMs = 3_000

/**
 * Switches the journal on or off for every process of the store. It begins between two
 * transactions: those in flight end first, and later ones wait and then see that it is on.
 */
export async function setJournaling(sql: Sql, wanted: Journaling): Promise<void> {
  const [row] = await sql<[{ id: string | null }]>`SELECT id FROM plant_store.journal_life`
  const current = row.id === null ? 'off' : 'on'
  if (wanted === 'as before' || wanted === current) return
  await inTransaction(sql, async () => {
    const [locked] = await sql<[{ id: string | null }]>`
      SELECT id FROM plant_store.journal_life FOR UPDATE`
    if ((locked.id === null) === (wanted === 'off')) return
    if (wanted === 'on') await waitForChanges(sql)
    // A row without changes marks either: readers of other processes notice it.
    const [mark] = await sql<[{ seq: string }]>`
      INSERT INTO plant_store.journal (seq, at, nonce, count, changes)
      VALUES (pg_catalog.nextval('plant_store.journal_seq'), ${Date.now()}, ${newNonce()}, 0, '')
      RETURNING seq`
    const [id, since] = wanted === 'on' ? [newJournalId(), mark.seq] : [null, '0']
    await sql`UPDATE plant_store.journal_life SET id = ${id}, since = ${since}::bigint`
  })
}

/**
 * Whether new rows would sort before rows that are there. Logical replication, with which databases
 * are moved, does not copy sequences.
 */
export async function isSequenceBehind(sql: Sql): Promise<boolean> {
  const [row] = await sql<[{ is_behind: boolean }]>`
    SELECT coalesce(last_value, 0::bigint) <
      greatest(since, (SELECT pg_catalog.max(seq) FROM plant_store.journal)) AS is_behind
    FROM plant_store.journal_life, pg_catalog.pg_sequences
    WHERE schemaname = 'plant_store' AND sequencename = 'journal_seq'`
  return row.is_behind
}

/** Raises the sequence if it is behind. Returns whether it was. Must run inside a transaction. */
export async function raiseSequence(sql: Sql): Promise<boolean> {
  // Only one process at a time does this or switches the journal.
  await sql`SELECT FROM plant_store.journal_life FOR UPDATE`
  if (!(await isSequenceBehind(sql))) return false
  // A row in flight has a number from before.
  await waitForChanges(sql)
  try {
    await sql`
      SELECT pg_catalog.setval('plant_store.journal_seq',
        greatest(since, (SELECT pg_catalog.max(seq) FROM plant_store.journal)))
      FROM plant_store.journal_life`
  } catch (error) {
    if (codeOf(error) !== '42501') throw error
    throw new UnusableStore(
      'The sequence plant_store.journal_seq is behind the journal, as after a move by logical ' +
        'replication, and the user of DATABASE_URL may not raise it: grant it UPDATE on it.',
      { cause: error },
    )
  }
  return true
}

/** Waits until no write is in flight, and blocks new ones until the transaction ends. */
async function waitForChanges(sql: Sql): Promise<void> {
  try {
    await sql`SELECT pg_catalog.set_config('lock_timeout', ${String(switchTimeoutMs)}, TRUE)`
    await sql`LOCK TABLE plant_store.plants IN SHARE MODE`
  } catch (error) {
    if (codeOf(error) !== '55P03') throw error
    throw new UnusableStore(
      'The journal cannot begin while a transaction changes plants: end it, or try again.',
      { cause: error },
    )
  }
}

interface OrderedRow extends PageRow {
  /** Whether the journal begins with it. */
  readonly isFirst: boolean
}

/** Reads a page of settled changes. It begins after everything that can still appear before it. */
export async function readJournal(
  sql: Query,
  horizon: Horizon,
  after: Position | 'oldest',
  limit: number,
): Promise<JournalPage | 'gone' | 'off'> {
  const from = after === 'oldest' ? after : toCursor(after)
  if (from === undefined) return 'gone'
  const deadline = performance.now() + settleTimeoutMs
  // The first page of a process would have to be read again.
  if (from === 'oldest' && horizon.last() === undefined) await horizon.settle(sql)
  for (let polls = 1; ; ) {
    const settledBefore = horizon.last()
    const rows = await selectRows(sql, from, limit)
    if (rows === 'off') return rows
    const begin = toBeginning(rows[0], from)
    if (begin === undefined) return 'gone'
    // A client has a position only if its row is settled. The oldest row may still be preceded if
    // the rows before it were trimmed.
    const isKnown = from !== 'oldest' || rows[0]?.isFirst === true
    const known = isKnown ? Math.max(settledBefore ?? 0, begin.seq) : settledBefore
    const seqs = rows.map(({ cursor }) => cursor.seq)
    const settled = rows.slice(0, horizon.countSettled(seqs, known))
    const page = toPage(begin, settled, limit)
    if (settled.length === rows.length || !page.isLast) return page
    // A row before the next one may still be in flight.
    if (await horizon.settle(sql)) continue
    if (isKnown || settled.length > 0) {
      if (page.events.length > 0 || polls++ === maxPolls) return page
    } else if (performance.now() > deadline) throw unsettled()
    await sleep(pollMs)
  }
}

/** A row as the server sends it. Without a `seq`, the journal is empty. */
interface SelectedRow extends Pick<OrderedRow, 'count' | 'isFirst' | 'changes'> {
  readonly journalId: string | null
  readonly seq: string | null
  readonly nonce: number
  readonly at: string
}

/**
 * Selects the rows of a page from a cursor on: as many as have this number of changes. The server
 * omits the texts after the first 1 MiB, and knows their lengths without reading them. The first
 * row often only validates the position; its text is omitted then as well. Operators have the
 * exact types of their values: others could be those of another user.
 */
async function selectRows(
  sql: Query,
  from: Cursor | 'oldest',
  limit: number,
): Promise<OrderedRow[] | 'off'> {
  const { seq: first, index } = from === 'oldest' ? { seq: null, index: 0 } : from
  const selected = await sql<SelectedRow[]>`
    SELECT life.id AS "journalId", row.seq, row.nonce, row.count, row.at,
      row.seq = life.since AS "isFirst",
      CASE WHEN row.before = 0 OR row.bytes <= ${limits.pageBytes}::bigint
        THEN row.changes END AS changes
    FROM plant_store.journal_life AS life LEFT JOIN LATERAL (
      SELECT *, (pg_catalog.sum(events) OVER to_here)::bigint - events AS before,
        pg_catalog.sum(pg_catalog.octet_length(changes)) OVER to_here AS bytes
      FROM (
        SELECT seq, nonce, count, at,
          CASE WHEN seq = ${first}::bigint THEN count - ${index}::bigint ELSE count END AS events,
          CASE WHEN seq = ${first}::bigint AND count = ${index}::bigint THEN ''
            ELSE changes END AS changes
        FROM plant_store.journal WHERE seq >= coalesce(${first}::bigint, life.since)
        ORDER BY seq LIMIT ${limit + 1}) AS rows
      WINDOW to_here AS (ORDER BY seq)) AS row ON row.before < ${limit}::bigint
    ORDER BY row.seq`
  const rows: OrderedRow[] = []
  for (const { journalId, seq, nonce, at, ...row } of selected) {
    if (journalId === null) return 'off'
    if (seq === null) return []
    const cursor = { journalId, seq: Number(seq), nonce, index: 0 }
    rows.push({ ...row, cursor, at: Number(at) })
  }
  return rows
}

/**
 * The position after every change that is visible now, once the transactions in flight before it
 * have ended. An earlier position would be before changes that were acknowledged: a client that
 * has seen those would apply them again.
 */
export async function journalEnd(sql: Query, horizon: Horizon): Promise<Position | 'off'> {
  const deadline = performance.now() + settleTimeoutMs
  const newest = Number(await lastRow(sql))
  while ((horizon.last() ?? 0) < newest) {
    // A wait that a page began earlier settles first, and may cover fewer rows than there are now.
    if (await horizon.settle(sql)) continue
    if (performance.now() > deadline) throw unsettled()
    await sleep(pollMs)
  }
  return selectEnd(sql, newest, horizon.last() ?? 0)
}

/** The position after the newest change. Others may still appear before it. */
export function newestPosition(sql: Query): Promise<Position | 'off'> {
  return selectEnd(sql, 0, maxSeq)
}

const maxSeq = 2n ** 63n - 1n

/** The position after the last row up to the `seq` `upTo`. Fails if that is before `from`. */
async function selectEnd(
  sql: Query,
  from: number,
  upTo: number | bigint,
): Promise<Position | 'off'> {
  const [row] = await sql<[Pick<SelectedRow, 'seq' | 'nonce' | 'count'> & { id: string | null }]>`
    SELECT id, seq, nonce, count FROM plant_store.journal_life LEFT JOIN
      (SELECT seq, nonce, count FROM plant_store.journal WHERE seq <= ${upTo}::bigint
        ORDER BY seq DESC LIMIT 1) AS last ON seq >= since`
  const { id, seq, nonce, count } = row
  if (id === null) return 'off'
  // The rows were dropped meanwhile. At most an older one is left, which was committed late.
  if (seq === null || Number(seq) < from) throw unsettled()
  return toPosition({ journalId: id, seq: Number(seq), nonce, index: count })
}

/** The last visible row, to notice new ones. */
export async function lastRow(sql: Query): Promise<string | null> {
  const [row] = await sql<[{ last: string | null }]>`
    SELECT pg_catalog.max(seq) AS last FROM plant_store.journal`
  return row.last
}
