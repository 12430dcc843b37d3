import { setTimeout as sleep } from 'node:timers/promises'
import { rowOverhead, rowsPerStretch, type Stretch } from '../../journal/bound.ts'
import { toPosition } from '../../journal/position.ts'
import { type JournalRow, newJournalId, newNonce } from '../../journal/row.ts'
import { planDrop, planTrim, rowsPerTrim, type TrimRow } from '../../journal/trim.ts'
import { unreachable } from '../failures.ts'
import { type Journaling, type Position, UnusableStore } from '../store.ts'
import { codeOf } from './failures.ts'
import type { Horizon } from './horizon.ts'
import { inTransaction, type Sql } from './sql.ts'

/** How long `journalEnd` waits for transactions in flight, and how often it polls. */
const endTimeoutMs = 1_000
const pollMs = 5
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
    if (wanted === 'off') await sql`UPDATE plant_store.journal_life SET id = NULL, since = 0`
    else {
      await waitForChanges(sql)
      const [begun] = await sql<[{ seq: string }]>`
        INSERT INTO plant_store.journal (seq, at, nonce, count, changes)
        VALUES (pg_catalog.nextval('plant_store.journal_seq'), ${Date.now()}, ${newNonce()}, 0, '')
        RETURNING seq`
      await sql`
        UPDATE plant_store.journal_life SET id = ${newJournalId()}, since = ${begun.seq}::bigint`
    }
  })
}

/**
 * Writes a row if the journal is on. It must be the last statement that can wait for a lock (see
 * `Horizon`), and come after those that change plants (see `setJournaling`).
 */
export async function writeRow(sql: Sql, { at, nonce, count, changes }: JournalRow): Promise<void> {
  await sql`
    INSERT INTO plant_store.journal (seq, at, nonce, count, changes)
    SELECT pg_catalog.nextval('plant_store.journal_seq'), ${at}::bigint, ${nonce}::integer,
      ${count}::integer, ${changes}::text
    FROM plant_store.journal_life WHERE id IS NOT NULL`
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

/** The position after the last settled change, once transactions in flight have settled. */
export async function journalEnd(sql: Sql, horizon: Horizon): Promise<Position | 'off'> {
  const deadline = performance.now() + endTimeoutMs
  const newest = Number(await lastRow(sql))
  // A wait that a page began earlier settles first, and may cover fewer rows than there are now.
  while (!(await horizon.settle(sql)) || (horizon.last() ?? 0) < newest) {
    if (performance.now() > deadline) break
    await sleep(pollMs)
  }
  const last = horizon.last()
  if (last === undefined) throw unreachable()
  const [row] = await sql<[{ id: string | null; seq: string; nonce: number; count: number }]>`
    SELECT id, seq, nonce, count FROM plant_store.journal_life LEFT JOIN
      (SELECT seq, nonce, count FROM plant_store.journal WHERE seq <= ${last}::bigint
        ORDER BY seq DESC LIMIT 1) AS last ON TRUE`
  const { id, seq, nonce, count } = row
  return id === null ? 'off' : toPosition({ journalId: id, seq: Number(seq), nonce, index: count })
}

/** The last visible row, to notice new ones. */
export async function lastRow(sql: Sql): Promise<string | null> {
  const [row] = await sql<[{ last: string | null }]>`
    SELECT pg_catalog.max(seq) AS last FROM plant_store.journal`
  return row.last
}

/** Deletes some rows from before this time. Returns whether none are left. */
export async function trimJournal(sql: Sql, before: number): Promise<boolean> {
  const { upTo, isDone } = planTrim(await selectOldest(sql), before)
  await deleteUpTo(sql, upTo)
  return isDone
}

/** Deletes some of the oldest rows regardless of age. Returns how many changes they had. */
export async function dropChanges(sql: Sql, first: number, bytes: number): Promise<number> {
  // Counts what is deleted here: another process may drop the same rows at the same moment.
  return deleteUpTo(sql, planDrop(await selectOldest(sql), first, bytes).upTo)
}

async function selectOldest(sql: Sql): Promise<TrimRow[]> {
  const rows = await sql<{ seq: string; at: string; bytes: number; count: number }[]>`
    SELECT seq, at, pg_catalog.octet_length(changes) AS bytes, count FROM plant_store.journal
    ORDER BY seq LIMIT ${rowsPerTrim}`
  return rows.map(({ seq, at, bytes, count }) => [Number(seq), Number(at), bytes, count])
}

/** Returns how many changes the deleted rows had. */
async function deleteUpTo(sql: Sql, seq: number | undefined): Promise<number> {
  if (seq === undefined) return 0
  const [row] = await sql<[{ changes: string | null }]>`
    WITH deleted AS (DELETE FROM plant_store.journal WHERE seq <= ${seq}::bigint RETURNING count)
    SELECT pg_catalog.sum(count) AS changes FROM deleted`
  return Number(row.changes)
}

/** Measures rows with `after < seq <= upTo`. The server does not read their texts for it. */
export async function measureJournal(sql: Sql, after: number, upTo: number): Promise<Stretch> {
  const [row] = await sql<[Record<keyof Stretch, string>]>`
    SELECT pg_catalog.count(*) AS rows, coalesce(pg_catalog.sum(bytes), 0) AS bytes,
      coalesce(pg_catalog.min(seq), 0) AS first, coalesce(pg_catalog.max(seq), 0) AS last
    FROM (SELECT seq, pg_catalog.octet_length(changes) + ${rowOverhead} AS bytes
      FROM plant_store.journal WHERE seq > ${after}::bigint AND seq <= ${upTo}::bigint
      ORDER BY seq LIMIT ${rowsPerStretch}) AS stretch`
  const { rows, bytes, first, last } = row
  return { rows: Number(rows), bytes: Number(bytes), first: Number(first), last: Number(last) }
}
