import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JournalRow } from '../../journal/row.ts'
import { apply, type Change, type Outcome, type Rows, recordChanges } from '../changes.ts'
import { diskFailed, diskFull, locked } from '../failures.ts'
import { buildHistogram, observe, type StoreMeasures, secondsBounds } from '../measures.ts'
import { busyTimeoutMs } from './connection.ts'
import { rewriteWal, setSynchronous } from './durability.ts'
import { isBusy, isIoError, isOutOfSpace, toCommitFailure, toRefusal } from './failures.ts'
import type { buildJournalStatements } from './journal.ts'

/** A write that waits for its batch. */
export interface SqliteWrite {
  /** Runs its statements inside the transaction of the batch, and returns the outcome. */
  readonly run: () => unknown
  /**
   * Whether a power cut may undo it. Writes of webhook senders are not synced, because a sync would
   * cost more than the deliveries, which are repeated instead.
   */
  readonly isRepeatable: boolean
  readonly arrivedAt: number
}

/** Commits batches of writes on one connection, one at a time. */
export interface Writer {
  /**
   * Returns one outcome for each write, in order. They are on disk then, unless all of them are
   * repeatable.
   */
  commit(batch: readonly SqliteWrite[]): unknown[] | Promise<unknown[]>
  /** Applies a change of plants inside the transaction of a batch, and notes it for the journal. */
  applyChange<One extends Change>(change: One): Outcome<One>
  readonly measures: Pick<StoreMeasures, 'commitSeconds' | 'fsyncSeconds'>
}

interface WriterOptions {
  /** How long a batch waits for the lock of another process. */
  readonly lockTimeoutMs: number
  /** Called after a commit that has added to the journal. */
  readonly onJournaled: () => void
}

/** The pause between two attempts to get a lock that another process holds. */
const lockRetryMs = 2

export function buildWriter(
  db: DatabaseSync,
  rows: Rows,
  journal: ReturnType<typeof buildJournalStatements>,
  { lockTimeoutMs, onJournaled }: WriterOptions,
): Writer {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const end = db.prepare('COMMIT')
  const recorder = recordChanges(rows)
  const commitSeconds = buildHistogram(secondsBounds)
  const fsyncSeconds = buildHistogram(secondsBounds)
  let sync: 'FULL' | 'NORMAL' = 'FULL'
  let isJournalOn = false
  let hasFailed = false

  function commit(batch: readonly SqliteWrite[]): unknown[] | Promise<unknown[]> {
    return tryBegin(batch) ? run(batch) : commitWhenUnlocked(batch)
  }

  async function commitWhenUnlocked(batch: readonly SqliteWrite[]): Promise<unknown[]> {
    // Counted from the arrival of the first write, so that waits in the queue do not add up.
    const deadline = (batch[0]?.arrivedAt ?? 0) + lockTimeoutMs
    db.exec('PRAGMA busy_timeout = 0')
    try {
      while (!tryBegin(batch)) {
        if (performance.now() > deadline) throw locked()
        await sleep(lockRetryMs)
      }
    } finally {
      db.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    }
    return run(batch)
  }

  /** Begins the transaction of a batch, unless another connection holds the lock. */
  function tryBegin(batch: readonly SqliteWrite[]): boolean {
    try {
      setSync(batch.every(({ isRepeatable }) => isRepeatable) ? 'NORMAL' : 'FULL')
      begin.run()
    } catch (error) {
      if (isBusy(error)) return false
      throw toRefusal(error)
    }
    if (hasFailed) repair()
    return true
  }

  /**
   * Called before a transaction, because SQLite does not change the setting inside one. A
   * connection opens with FULL. Only transactions of repeatable writes run with NORMAL.
   */
  function setSync(wanted: typeof sync): void {
    if (wanted === sync) return
    setSynchronous(db, wanted)
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

  // Synchronous from BEGIN to COMMIT: an `await` in between would mix requests.
  function run(batch: readonly SqliteWrite[]): unknown[] {
    let toFailure = toRefusal
    const startedAt = performance.now()
    let outcomes: unknown[]
    let recorded: JournalRow | undefined
    try {
      // Another process may have switched the journal on or off since the last commit.
      isJournalOn = journal.isOn()
      outcomes = batch.map((write) => write.run())
      recorded = recorder.take()
      if (recorded !== undefined) journal.add(recorded)
      toFailure = toCommitFailure
      const syncedFrom = performance.now()
      end.run()
      const endedAt = performance.now()
      observe(commitSeconds, (endedAt - startedAt) / 1000)
      if (sync === 'FULL') observe(fsyncSeconds, (endedAt - syncedFrom) / 1000)
    } catch (error) {
      hasFailed ||= isIoError(error)
      rollBack()
      throw toFailure(error)
    }
    if (recorded !== undefined) onJournaled()
    return outcomes
  }

  // Reports the first failure, even if the rollback fails as well.
  function rollBack(): void {
    recorder.discard()
    try {
      if (db.isTransaction) db.exec('ROLLBACK')
    } catch {}
  }

  return {
    commit,
    applyChange: (change) => (isJournalOn ? recorder.apply(change) : apply(rows, change)),
    measures: { commitSeconds, fsyncSeconds },
  }
}
