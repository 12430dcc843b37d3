import type { DatabaseSync } from 'node:sqlite'
import {
  type Cursor,
  isReached,
  type Position,
  toCursor,
  toPosition,
} from '../../journal/position.ts'
import {
  type Journaling,
  type JournalPage,
  type JournalRow,
  newJournalId,
  newNonce,
  type Reading,
  readRow,
} from '../../journal/row.ts'
import { writeAtOpening } from './connection.ts'
import { prepareRows } from './plants.ts'

type IdRow = [id: string | null, since: bigint]
type EndRow = [seq: bigint, nonce: bigint, count: bigint]
type ContentRow = [...EndRow, at: bigint, changes: string]

/** The statements on the journal. Those that write run inside the transaction of a batch. */
export function buildJournalStatements(db: DatabaseSync) {
  const selectId = prepareRows(db, 'SELECT id, since FROM journal_life')
  const setId = db.prepare('UPDATE journal_life SET id = ?, since = ?')
  const insert = db.prepare('INSERT INTO journal (at, nonce, count, changes) VALUES (?, ?, ?, ?)')
  const selectEnd = prepareRows(
    db,
    'SELECT seq, nonce, count FROM journal ORDER BY seq DESC LIMIT 1',
  )
  const selectFrom = prepareRows(
    db,
    `SELECT seq, nonce, count, at, iif(seq = ?1 AND count = ?2, '', changes) FROM journal
     WHERE seq >= ?1 ORDER BY seq`,
  )

  function add({ at, nonce, count, changes }: JournalRow): number {
    return Number(insert.run(at, nonce, count, changes).lastInsertRowid)
  }

  function identity(): IdRow {
    return selectId.get() as unknown as IdRow
  }

  function isOn(): boolean {
    return identity()[0] !== null
  }

  function readFrom(from: Cursor | 'oldest', journalId: string, since: bigint, limit: number) {
    const reading: Reading = { events: [], limit, bytes: 0 }
    const { events } = reading
    let begin: Position | undefined
    let isLast = true
    // The first row often only validates the position. Its changes are not read then.
    const [first, index] = from === 'oldest' ? [since, 0] : [from.seq, from.index]
    for (const row of selectFrom.iterate(first, index) as Iterable<unknown>) {
      const [seq, nonce, count, at, changes] = row as ContentRow
      let cursor: Cursor = { journalId, seq: Number(seq), nonce: Number(nonce), index: 0 }
      if (begin === undefined) {
        if (from !== 'oldest') {
          if (!isReached(from, { ...cursor, index: Number(count) })) return 'gone'
          cursor = from
        }
        begin = toPosition(cursor)
      }
      if (cursor.index === Number(count)) continue
      isLast = readRow({ at: Number(at), changes }, cursor, reading) && events.length < limit
      if (!isLast) break
    }
    if (begin === undefined) return 'gone'
    return { begin, events, end: events.at(-1)?.position ?? begin, isLast }
  }

  return {
    add,

    /** Begins a new journal, or ends this one. A row without changes marks either. */
    switchTo(journaling: Exclude<Journaling, 'as before'>): void {
      const seq = add({ at: Date.now(), nonce: newNonce(), count: 0, changes: '' })
      if (journaling === 'off') setId.run(null, 0)
      else setId.run(newJournalId(), seq)
    },

    isOn,

    read(after: Position | 'oldest', limit: number): JournalPage | 'gone' | 'off' {
      const [id, since] = identity()
      if (id === null) return 'off'
      const from = after === 'oldest' ? after : toCursor(after)
      if (from === undefined || (from !== 'oldest' && from.journalId !== id)) return 'gone'
      return readFrom(from, id, since, limit)
    },

    /** The position after the last change. */
    end(): Position | 'off' {
      const [id] = identity()
      if (id === null) return 'off'
      const row = (selectEnd.get() as unknown as EndRow).map(Number)
      const [seq, nonce, index] = row as [number, number, number]
      return toPosition({ journalId: id, seq, nonce, index })
    },
  }
}

/** Begins or ends the journal as wanted, for every process of the store. */
export function setJournaling(
  db: DatabaseSync,
  { isOn, switchTo }: ReturnType<typeof buildJournalStatements>,
  wanted: Journaling,
): void {
  if (wanted === 'as before' || isOn() === (wanted === 'on')) return
  writeAtOpening(db, () => {
    if (isOn() !== (wanted === 'on')) switchTo(wanted)
  })
}
