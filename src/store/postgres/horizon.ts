import type { Sql } from './sql.ts'

/**
 * How far the rows of the journal are settled: no row can come up before them any more.
 *
 * A transaction draws the number of its row last, when it holds every lock that it waits for. So
 * two transactions that change one plant have their numbers in the order of their commits. Others
 * may commit in another order than they drew: then a number is missing for a moment, or for good,
 * when its transaction was rolled back. `nextval` keeps a lock on the sequence until the
 * transaction has ended, and is visible or undone. So the missing number is settled once everybody
 * has ended who held this lock after the number was missed. Transactions of others do not matter.
 */
export interface Horizon {
  /** Counts the rows that are settled, given the numbers of consecutive rows. */
  countSettled(seqs: readonly number[]): number
  /** Notes that a row is settled, since its position was given out. */
  include(seq: number): void
  /** Looks whether more has settled. Rows that were read before this are to be read again. */
  settle(sql: Sql): Promise<boolean>
  /** The number of the last settled row; undefined when nothing is known yet. */
  last(): number | undefined
}

/** Transactions that may hold missing numbers up to this one. */
interface Waiting {
  readonly upTo: number
  readonly holders: ReadonlySet<string>
}

/** Builds the horizon of one session. `onUnsettled` hears that somebody has to look again. */
export function buildHorizon(onUnsettled: () => void): Horizon {
  let last: number | undefined
  let waiting: Waiting | undefined

  function include(seq: number): void {
    last = Math.max(last ?? 0, seq)
  }

  return {
    include,
    last: () => last,

    countSettled(seqs) {
      if (last === undefined) return 0
      let count = 0
      for (const seq of seqs) {
        if (seq > last + 1) break
        if (seq > last) last = seq
        count++
      }
      return count
    },

    async settle(sql) {
      // The server looks at the locks after it has fixed which rows are visible.
      const [row] = await sql<[{ last: string | null; holders: string | null }]>`
        SELECT (SELECT pg_catalog.max(seq) FROM plant_store.journal) AS last,
          (SELECT pg_catalog.string_agg(virtualtransaction, ' ') FROM pg_catalog.pg_locks
            WHERE relation = 'plant_store.journal_seq'::pg_catalog.regclass
              AND database = (SELECT oid FROM pg_catalog.pg_database
                WHERE datname = pg_catalog.current_database())
              AND mode = 'RowExclusiveLock') AS holders`
      const holders = new Set(row.holders?.split(' '))
      waiting ??= { upTo: Number(row.last ?? 0), holders }
      const left = waiting.holders.intersection(holders)
      if (left.size > 0) {
        waiting = { upTo: waiting.upTo, holders: left }
        onUnsettled()
        return false
      }
      include(waiting.upTo)
      waiting = undefined
      return true
    },
  }
}
