import type { Query } from './sql.ts'

/**
 * The horizon up to which the rows of the journal are settled: no earlier row can still appear.
 *
 * A transaction draws its `seq` last, when it holds every lock that it needs. So two transactions
 * that change the same plant draw in the order of their commits. Others may commit out of order,
 * which leaves a gap until the slower one commits, or forever if it rolls back. `nextval` holds a
 * lock on the sequence until the transaction ends. A gap is therefore settled once every
 * transaction that held the lock when we saw the gap has ended. Other transactions do not matter.
 */
export type Horizon = ReturnType<typeof buildHorizon>

/** Transactions that may still fill gaps up to this row. */
interface Waiting {
  readonly upTo: number
  readonly holders: ReadonlySet<string>
}

/** Builds the horizon of one session. `onUnsettled` is called if it has to be checked again. */
export function buildHorizon(onUnsettled: () => void) {
  let last: number | undefined
  let waiting: Waiting | undefined

  function include(seq: number): void {
    last = Math.max(last ?? 0, seq)
  }

  return {
    /** The last settled row; undefined if none is known yet. */
    last: () => last,

    /**
     * Counts how many of these consecutive rows are settled. `known` is a row that was settled
     * before they were read. One that settled later does not count: rows before it may be missing
     * here.
     */
    countSettled(seqs: readonly number[], known: number | undefined): number {
      if (known === undefined) return 0
      let end = known
      let count = 0
      for (const seq of seqs) {
        if (seq > end + 1) break
        end = Math.max(end, seq)
        count++
      }
      include(end)
      return count
    },

    /** Checks whether more has settled. If so, rows that were read before must be read again. */
    async settle(sql: Query): Promise<boolean> {
      // An answer says nothing about a wait that another reader began after the question was sent.
      const judged = waiting
      // The server reads the locks after it has taken the snapshot of the rows.
      const [row] = await sql<[{ last: string | null; holders: string | null }]>`
        SELECT (SELECT pg_catalog.max(seq) FROM plant_store.journal) AS last,
          (SELECT pg_catalog.string_agg(virtualtransaction, ' ') FROM pg_catalog.pg_locks
            WHERE relation = 'plant_store.journal_seq'::pg_catalog.regclass
              AND database = (SELECT oid FROM pg_catalog.pg_database
                WHERE datname = pg_catalog.current_database())
              AND mode = 'RowExclusiveLock') AS holders`
      const holders = new Set(row.holders?.split(' '))
      const upTo = judged?.upTo ?? Number(row.last ?? 0)
      const left = judged?.holders.intersection(holders) ?? holders
      const isSettled = left.size === 0
      if (waiting === judged) waiting = isSettled ? undefined : { upTo, holders: left }
      if (isSettled) include(upTo)
      else onUnsettled()
      return isSettled
    },
  }
}
