import type { DatabaseSync } from 'node:sqlite'
import { applyTo, type SqliteChange, type Statements } from './changes.ts'
import { isBusy, toCommitFailure, toRefusal } from './failures.ts'

/** What became of a batch: one outcome for each change, and how long the commit with its sync took. */
export interface Committed {
  readonly outcomes: unknown[]
  readonly commitMs: number
}

/** Commits batches on one connection, on whichever thread it is. */
export interface Batches {
  /** Begins a transaction, unless another connection has one under way. */
  tryBegin(): boolean
  /** Makes the changes of the transaction and commits them. Each outcome is true when this returns. */
  run(changes: readonly SqliteChange[]): Committed
}

export function buildBatches(db: DatabaseSync, statements: Statements): Batches {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')

  return {
    tryBegin() {
      try {
        begin.run()
        return true
      } catch (error) {
        if (isBusy(error)) return false
        throw toRefusal(error)
      }
    },

    // One synchronous stretch from BEGIN to COMMIT: with an `await` in between, requests would mix.
    run(changes) {
      let explain = toRefusal
      try {
        const outcomes = changes.map((change) => applyTo(statements, change))
        explain = toCommitFailure
        const startedAt = performance.now()
        commit.run()
        return { outcomes, commitMs: performance.now() - startedAt }
      } catch (error) {
        rollBack()
        throw explain(error)
      }
    },
  }

  // What counts is why it failed, even if this fails, too.
  function rollBack(): void {
    try {
      if (db.isTransaction) db.exec('ROLLBACK')
    } catch {}
  }
}
