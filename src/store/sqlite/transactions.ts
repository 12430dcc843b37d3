import type { DatabaseSync } from 'node:sqlite'
import { apply, type Change, type RecordedChanges, recordChanges } from '../changes.ts'
import { diskFailed, diskFull } from '../failures.ts'
import { rewriteWal } from './durability.ts'
import { isBusy, isIoError, isOutOfSpace, toCommitFailure, toRefusal } from './failures.ts'
import { buildJournalStatements } from './journal.ts'
import { buildPlantStatements } from './plants.ts'
import { buildReceiverStatements } from './receivers.ts'
import { buildTokenStatements } from './tokens.ts'

/** Every write to SQLite: changes of plants, and calls of other writes. */
export type SqliteChange = Change | Call

/** A write that changes no plant, by its name and arguments: plain data, as a change is. */
export interface Call {
  readonly kind: 'call'
  readonly name: keyof Writes
  readonly args: readonly unknown[]
}

/** The prepared statements of one connection. */
export type Statements = ReturnType<typeof buildStatements>
export type Writes = Statements['writes']

export function buildStatements(db: DatabaseSync) {
  const plants = buildPlantStatements(db)
  const tokens = buildTokenStatements(db)
  const receivers = buildReceiverStatements(db)
  const journal = buildJournalStatements(db)
  const writes = {
    forgetKeys: plants.forgetKeys,
    trimJournal: journal.trim,
    dropChanges: journal.drop,
    ...tokens.writes,
    ...receivers.writes,
  }
  return { plants, tokens, receivers, journal, writes }
}

/** One outcome for each change, and how long the transaction took. */
export interface Committed {
  readonly outcomes: unknown[]
  /** From the first statement to the end of `COMMIT`. */
  readonly commitMs: number
  /** `COMMIT` alone, which writes and syncs the WAL; undefined if it was not synced. */
  readonly syncMs: number | undefined
}

/** Runs transactions on one connection, in any thread. */
export interface Transactions {
  /** Begins a transaction for these changes, unless another connection holds the lock. */
  tryBegin(changes: readonly SqliteChange[]): boolean
  /**
   * Applies the changes and commits them. They are on disk when it returns, unless all of them are
   * repeatable. If they turn out to be large, it applies only the first ones.
   */
  run(changes: readonly SqliteChange[]): Committed
}

/** Deletes write the deleted plant to the journal, so they can exceed their estimated size. */
const maxRecorded = 4 * 1024 * 1024

export function buildTransactions(db: DatabaseSync, statements: Statements): Transactions {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const recorder = recordChanges(statements.plants.rows)
  let sync: 'FULL' | 'NORMAL' = 'FULL'
  let hasFailed = false

  /**
   * Called before a transaction, because SQLite ignores the pragma inside one. A connection opens
   * with FULL, as `durability.ts` proves. Only transactions of repeatable changes run with NORMAL.
   */
  function setSync(wanted: typeof sync): void {
    if (wanted === sync) return
    db.exec(`PRAGMA synchronous = ${wanted}`)
    sync = wanted
  }

  /** After a failed commit, the WAL may have unsynced commits that no later sync would write. */
  function repair(): void {
    try {
      rewriteWal(db.location())
      hasFailed = false
    } catch (error) {
      rollBack()
      throw isOutOfSpace(error) ? diskFull(error) : diskFailed(error)
    }
  }

  return {
    tryBegin(changes) {
      try {
        setSync(changes.every(isRepeatable) ? 'NORMAL' : 'FULL')
        begin.run()
      } catch (error) {
        if (isBusy(error)) return false
        throw toRefusal(error)
      }
      if (hasFailed) repair()
      return true
    },

    // Synchronous from BEGIN to COMMIT: an `await` in between would mix requests.
    run(changes) {
      let toFailure = toRefusal
      const startedAt = performance.now()
      try {
        // Another process may have switched the journal on or off since the last commit.
        const used = statements.journal.isOn() ? recorder : undefined
        const outcomes: unknown[] = []
        for (const change of changes) {
          outcomes.push(applyTo(statements, used, change))
          if (recorder.recorded() > maxRecorded) break
        }
        for (const row of recorder.take()) statements.journal.add(row)
        toFailure = toCommitFailure
        const syncedFrom = performance.now()
        commit.run()
        const endedAt = performance.now()
        const syncMs = sync === 'FULL' ? endedAt - syncedFrom : undefined
        return { outcomes, commitMs: endedAt - startedAt, syncMs }
      } catch (error) {
        hasFailed ||= isIoError(error)
        rollBack()
        throw toFailure(error)
      }
    },
  }

  // Reports the first failure, even if the rollback fails as well.
  function rollBack(): void {
    recorder.discard()
    try {
      if (db.isTransaction) db.exec('ROLLBACK')
    } catch {}
  }
}

function applyTo(
  { plants, writes }: Statements,
  recorder: RecordedChanges | undefined,
  change: SqliteChange,
): unknown {
  if (change.kind !== 'call') {
    return recorder === undefined ? apply(plants.rows, change) : recorder.apply(change)
  }
  const run: (...args: never[]) => unknown = writes[change.name]
  return run(...(change.args as never[]))
}

/**
 * Writes of webhook senders are not synced, because a sync would cost more than the deliveries. A
 * power cut loses those since the last synced commit, and the deliveries are repeated.
 */
export function isRepeatable(change: SqliteChange): boolean {
  if (change.kind !== 'call') return false
  return change.name === 'takeDeliveries' || change.name === 'saveOutcomes'
}
