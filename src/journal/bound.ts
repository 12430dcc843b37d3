import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * Keeps the journal within `JOURNAL_MAX` bytes by dropping the oldest changes before their time.
 * The size is a sum over stretches of rows: on SQLite, one sum over 1 GiB of small changes would
 * hold up every request for about a second. Complete stretches are measured once and remembered.
 * Only the oldest one, which any process may trim, and the newest, to which any process may append,
 * are measured again. On PostgreSQL, a row that commits late into a complete stretch is not
 * counted.
 */
export interface JournalBound {
  /** Measures the journal and drops the excess, in steps. */
  keep(): Promise<void>
  readonly measures: JournalMeasures
}

export interface JournalMeasures {
  bytes: number
  /** How many changes this process has dropped before their time. */
  droppedChanges: number
}

/** Consecutive rows of the journal: their first and last `seq`, and their size. */
export interface Stretch {
  readonly rows: number
  readonly bytes: number
  readonly first: number
  readonly last: number
}

/** The part of a store that the bound needs. */
interface Measured {
  measureJournal(after: number, upTo: number): Promise<Stretch>
  dropChanges(first: number, bytes: number): Promise<number>
}

/** Measuring this many rows takes less than a millisecond. */
export const rowsPerStretch = 1_000
/** The approximate overhead of a row: 25 bytes in SQLite, 75 in PostgreSQL. */
export const rowOverhead = 64

export function boundJournal(store: Measured, maxBytes: number): JournalBound {
  const measures = { bytes: 0, droppedChanges: 0 }
  /** Complete stretches in order. */
  const whole: Stretch[] = []

  /** Returns the `seq` of the oldest row. */
  async function measure(): Promise<number> {
    let newest = await measureAfter(whole.at(-1)?.last ?? 0)
    while (newest.rows === rowsPerStretch) {
      whole.push(newest)
      await nextTurn()
      newest = await measureAfter(newest.last)
    }
    await measureOldest()
    measures.bytes = whole.reduce((sum, { bytes }) => sum + bytes, newest.bytes)
    return (whole[0] ?? newest).first
  }

  async function measureOldest(): Promise<void> {
    for (let [oldest] = whole; oldest !== undefined; [oldest] = whole) {
      const { rows, bytes, first } = await store.measureJournal(0, oldest.last)
      if (rows > 0) {
        whole[0] = { ...oldest, bytes, first }
        return
      }
      whole.shift()
    }
  }

  function measureAfter(seq: number): Promise<Stretch> {
    return store.measureJournal(seq, Number.MAX_SAFE_INTEGER)
  }

  return {
    measures,
    async keep() {
      for (;;) {
        const first = await measure()
        if (measures.bytes <= maxBytes) return
        const dropped = await store.dropChanges(first, measures.bytes - maxBytes)
        measures.droppedChanges += dropped
        if (dropped === 0) return
      }
    },
  }
}
