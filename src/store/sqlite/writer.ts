import { closeSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BatcherBounds, buildBatcher, defaultBounds } from '../batcher.ts'
import { buildRecorder, type Change, type Outcome, type Rows } from '../changes.ts'
import { diskFailed, diskFull, locked } from '../failures.ts'
import { buildHistogram, observe, secondsBounds } from '../measures.ts'
import { busyTimeoutMs } from './connection.ts'
import { setSynchronous } from './database.ts'
import { hasCode, isOutOfSpace, toCommitFailure, toRefusal } from './failures.ts'
import type { buildJournalStatements } from './journal.ts'

/** A write that waits for its batch. */
interface Write {
  /** Runs its statements inside the transaction of the batch, and returns the outcome. */
  readonly run: () => unknown
  readonly isRepeatable: boolean
  readonly arrivedAt: number
}

export interface WriterOptions extends Partial<BatcherBounds> {
  /** How long a batch waits for the lock of another process. */
  readonly lockTimeoutMs?: number
}

const defaultLockTimeoutMs = 5_000
/** The pause between two attempts to get a lock that another process holds. */
const lockRetryMs = 2

/**
 * Commits writes in batches, one batch at a time. A write resolves with its outcome once it is on
 * disk. `onJournaled` is called after a commit that has added to the journal.
 */
export function buildWriter(
  db: DatabaseSync,
  rows: Rows,
  journal: ReturnType<typeof buildJournalStatements>,
  onJournaled: () => void,
  { lockTimeoutMs = defaultLockTimeoutMs, ...bounds }: WriterOptions,
) {
  const batcher = buildBatcher(commit, { ...defaultBounds, batchesInFlight: 1, ...bounds })
  const begin = db.prepare('BEGIN IMMEDIATE')
  const end = db.prepare('COMMIT')
  const recorder = buildRecorder(rows)
  const commitSeconds = buildHistogram(secondsBounds)
  const fsyncSeconds = buildHistogram(secondsBounds)
  let sync: 'FULL' | 'NORMAL' = 'FULL'
  let needsRepair = false

  function commit(batch: readonly Write[]): unknown[] | Promise<unknown[]> {
    return tryBegin(batch) ? run(batch) : commitWhenUnlocked(batch)
  }

  async function commitWhenUnlocked(batch: readonly Write[]): Promise<unknown[]> {
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
  function tryBegin(batch: readonly Write[]): boolean {
    try {
      setSync(batch.every(({ isRepeatable }) => isRepeatable) ? 'NORMAL' : 'FULL')
      begin.run()
    } catch (error) {
      if (hasCode(error, 'busy')) return false
      throw toRefusal(error)
    }
    if (needsRepair) repair()
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
      needsRepair = false
    } catch (error) {
      rollBack()
      throw isOutOfSpace(error) ? diskFull(error) : diskFailed(error)
    }
  }

  // Synchronous from BEGIN to COMMIT: an `await` in between would mix requests.
  function run(batch: readonly Write[]): unknown[] {
    let toFailure = toRefusal
    const startedAt = performance.now()
    let outcomes: unknown[]
    let isJournaled = false
    try {
      outcomes = batch.map((write) => write.run())
      const recorded = recorder.drain()
      // Another process may have switched the journal on or off since the last commit.
      isJournaled = recorded !== undefined && journal.isOn()
      if (recorded !== undefined && isJournaled) journal.add(recorded)
      toFailure = toCommitFailure
      const syncedFrom = performance.now()
      end.run()
      const endedAt = performance.now()
      observe(commitSeconds, (endedAt - startedAt) / 1000)
      if (sync === 'FULL') observe(fsyncSeconds, (endedAt - syncedFrom) / 1000)
    } catch (error) {
      needsRepair ||= hasCode(error, 'ioError')
      rollBack()
      throw toFailure(error)
    }
    if (isJournaled) onJournaled()
    return outcomes
  }

  // Reports the first failure, even if the rollback fails as well.
  function rollBack(): void {
    recorder.drain()
    try {
      if (db.isTransaction) db.exec('ROLLBACK')
    } catch {}
  }

  /** Queues a function that runs inside the transaction of its batch. */
  function write<Outcome>(run: () => Outcome): Promise<Outcome> {
    return batcher.submit({ run, isRepeatable: false, arrivedAt: performance.now() })
  }

  return {
    write,
    /**
     * Queues a write that a power cut may undo. Those of webhook senders are not synced, because a
     * sync would cost more than the deliveries, which are repeated instead.
     */
    writeRepeatable: <Outcome>(run: () => Outcome): Promise<Outcome> =>
      batcher.submit({ run, isRepeatable: true, arrivedAt: performance.now() }),
    /** Queues a change of plants. */
    writeChange: <One extends Change>(change: One): Promise<Outcome<One>> =>
      write(() => recorder.apply(change)),
    isFull: batcher.isFull,
    drain: batcher.drain,
    measure: () => ({ ...batcher.measure(), commitSeconds, fsyncSeconds }),
  }
}

const blockBytes = 1024 * 1024

/**
 * Writes the WAL again as it is, and syncs it. After a failed sync, Linux counts the pages as
 * clean: a later sync does not write them, and a commit that succeeds could be lost together with
 * an unsynced one before it. The caller holds the write lock.
 */
function rewriteWal(database: string | null): void {
  if (database === null) return
  const file = openSync(`${database}-wal`, 'r+')
  try {
    const block = Buffer.alloc(blockBytes)
    for (let at = 0; ; ) {
      const bytes = readSync(file, block, 0, block.length, at)
      if (bytes === 0) break
      at += writeSync(file, block, 0, bytes, at)
    }
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
