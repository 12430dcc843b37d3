import type { DatabaseSync } from 'node:sqlite'
import { type Cursor, type Position, toCursor, toPosition } from '../../journal/position.ts'
import {
  type JournalPage,
  type JournalRow,
  newJournalId,
  newNonce,
  type PageRow,
  toBeginning,
  toPage,
} from '../../journal/row.ts'
import { prepareRows } from './database.ts'

type IdRow = [id: string | null, since: bigint]
type EndRow = [seq: bigint, nonce: bigint, count: bigint]
type ContentRow = [...EndRow, at: bigint, changes: string]

/** The statements on the journal. Those that write run inside the transaction of a batch. */
export function buildJournalStatements(db: DatabaseSync) {
  const selectId = prepareRows(db, 'SELECT id, since FROM journal_life')
  const insert = db.prepare('INSERT INTO journal (at, nonce, count, changes) VALUES (?, ?, ?, ?)')
  const selectEnd = prepareRows(
    db,
    'SELECT seq, nonce, count FROM journal ORDER BY seq DESC LIMIT 1',
  )
  const selectFirst = prepareRows(
    db,
    'SELECT seq, nonce, count FROM journal WHERE seq >= ? ORDER BY seq LIMIT 1',
  )
  // The first row often only validates the position. Its changes are not read then.
  const selectFrom = prepareRows(
    db,
    `SELECT seq, nonce, count, at, iif(seq = ?1 AND count = ?2, '', changes) FROM journal
     WHERE seq >= ?1 ORDER BY seq`,
  )

  function identity(): IdRow {
    return selectId.get() as unknown as IdRow
  }

  function* readFrom({ journalId, seq: first, index }: Cursor): Iterable<PageRow> {
    for (const row of selectFrom.iterate(first, index) as Iterable<unknown>) {
      const [seq, nonce, count, at, changes] = row as ContentRow
      yield { ...toExtent(journalId, [seq, nonce, count]), at: Number(at), changes }
    }
  }

  return {
    add: ({ at, nonce, count, changes }: JournalRow) => void insert.run(at, nonce, count, changes),

    isOn: () => identity()[0] !== null,

    read(after: Position | 'oldest', limit: number): JournalPage | 'gone' | 'off' {
      const [id, since] = identity()
      if (id === null) return 'off'
      const from = after === 'oldest' ? after : toCursor(after)
      if (from === undefined) return 'gone'
      const first = selectFirst.get(from === 'oldest' ? since : from.seq) as EndRow | undefined
      const begin = toBeginning(first && toExtent(id, first), from)
      return begin === undefined ? 'gone' : toPage(begin, readFrom(begin), limit)
    },

    /** The position after the last change. */
    end(): Position | 'off' {
      const [id] = identity()
      if (id === null) return 'off'
      const { cursor, count } = toExtent(id, selectEnd.get() as unknown as EndRow)
      return toPosition({ ...cursor, index: count })
    },
  }
}

/** Where a row begins, and how many changes it has. */
function toExtent(journalId: string, row: EndRow): Pick<PageRow, 'cursor' | 'count'> {
  const [seq, nonce, count] = row.map(Number) as [number, number, number]
  return { cursor: { journalId, seq, nonce, index: 0 }, count }
}

export function isJournaling(db: DatabaseSync): boolean {
  return db.prepare('SELECT id FROM journal_life').get()?.id !== null
}

/** Ends the journal, or begins a new one, in a transaction. A row without changes marks either. */
export function switchJournal(db: DatabaseSync): void {
  const insert = `INSERT INTO journal (at, nonce, count, changes) VALUES (?, ?, 0, '')`
  const { lastInsertRowid: seq } = db.prepare(insert).run(Date.now(), newNonce())
  const life = isJournaling(db) ? ([null, 0] as const) : ([newJournalId(), seq] as const)
  db.prepare('UPDATE journal_life SET id = ?, since = ?').run(...life)
}
