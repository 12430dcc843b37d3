import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Batched } from '../batcher.ts'
import { locked } from '../failures.ts'
import { buildHistogram, type Histogram, observe, secondsBounds } from '../measures.ts'
import type { PlacedSeconds, StoreMeasures } from '../store.ts'
import { busyTimeoutMs, readSettings } from './connection.ts'
import { openThread, type Thread, type ThreadFile } from './thread.ts'
import {
  buildTransactions,
  type Committed,
  isRepeatable,
  type SqliteChange,
  type Statements,
} from './transactions.ts'

/** Where batches are committed. `adaptive` uses a thread on slow disks only. */
export type WriterLocation = 'adaptive' | 'in place' | 'thread'

export interface WriterOptions {
  readonly location: WriterLocation
  /** How long a batch waits for the lock of another process. */
  readonly lockTimeoutMs: number
}

/** A change that waits for its batch, and when it arrived. */
export interface SqliteWrite extends Batched {
  readonly change: SqliteChange
  readonly arrivedAt: number
}

/** Commits batches, one at a time. */
export interface Writer {
  /** Returns one outcome for each committed write: all of them, or the first ones. */
  commit(batch: readonly SqliteWrite[]): unknown[] | Promise<unknown[]>
  /** Commits on the connection of the main thread, whatever the location. */
  commitInPlace(batch: readonly SqliteWrite[]): unknown[] | Promise<unknown[]>
  /** How long the next batch may wait for more writes to share its commit. */
  commitDelayMs(): number
  readonly measures: Pick<StoreMeasures, 'commitSeconds' | 'fsyncSeconds'>
  /** Ends its thread, if there is one. No batch may be in flight. */
  close(): Promise<void>
}

/** This many consecutive commits slower than `slowMs` mean a slow disk, which delays reads. */
const slowCommits = 10
const slowMs = 4
/** After this many consecutive commits faster than `quickMs`, the thread is not worth its cost. */
const quickCommits = 50
const quickMs = 1
/** A batch in the thread is delayed by this share of the last commit, up to the maximum. */
const commitDelayShare = 1 / 2
const maxCommitDelayMs = 5
/** Each lost thread multiplies the number of slow commits that start another. */
const slowCommitsGrowth = 10
/** The pause between two attempts to get a lock that another process holds. */
const lockRetryMs = 2

export function openWriter(
  db: DatabaseSync,
  statements: Statements,
  { location, lockTimeoutMs }: WriterOptions,
): Writer {
  const commitSeconds = buildSeconds()
  const fsyncSeconds = buildSeconds()
  // Read before the first commit: nothing may fail after a commit has succeeded.
  const file = toFile(db)
  const transactions = buildTransactions(db, statements)
  let thread: Thread | undefined
  let opening: Promise<void> | undefined
  let leaving: Promise<void> | undefined
  let slowInARow = 0
  let quickInARow = 0
  let slowCommitsNeeded = slowCommits
  let lastSyncMs = 0
  if (location === 'thread') moveToThread()

  function commit(batch: readonly SqliteWrite[]): unknown[] | Promise<unknown[]> {
    // These do not wait for the disk.
    if (batch.every(({ change }) => isRepeatable(change))) return commitInPlace(batch)
    if (thread !== undefined) return commitInThread(thread, batch)
    if (location === 'thread' && opening !== undefined) return opening.then(() => commit(batch))
    return commitInPlace(batch)
  }

  function commitInPlace(batch: readonly SqliteWrite[]): unknown[] | Promise<unknown[]> {
    const changes = batch.map(toChange)
    return transactions.tryBegin(changes) ? runInPlace(changes) : commitWhenUnlocked(batch, changes)
  }

  function runInPlace(changes: readonly SqliteChange[]): unknown[] {
    const committed = transactions.run(changes)
    note('main', committed)
    const { outcomes, syncMs } = committed
    if (syncMs !== undefined) slowInARow = syncMs < slowMs ? 0 : slowInARow + 1
    if (slowInARow >= slowCommitsNeeded && location === 'adaptive') moveToThread()
    return outcomes
  }

  async function commitWhenUnlocked(
    batch: readonly SqliteWrite[],
    changes: readonly SqliteChange[],
  ): Promise<unknown[]> {
    const deadline = toDeadline(batch)
    db.exec('PRAGMA busy_timeout = 0')
    try {
      while (!transactions.tryBegin(changes)) {
        if (performance.now() > deadline) throw locked()
        await sleep(lockRetryMs)
      }
    } finally {
      db.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    }
    return runInPlace(changes)
  }

  async function commitInThread(
    current: Thread,
    batch: readonly SqliteWrite[],
  ): Promise<unknown[]> {
    const waitMs = toDeadline(batch) - performance.now()
    const committed = await current.commit(batch.map(toChange), waitMs)
    note('thread', committed)
    const { outcomes, syncMs } = committed
    if (syncMs === undefined) return outcomes
    lastSyncMs = syncMs
    quickInARow = lastSyncMs < quickMs ? quickInARow + 1 : 0
    if (quickInARow >= quickCommits && location === 'adaptive') leaveThread(current)
    return outcomes
  }

  function note(place: Place, { commitMs, syncMs }: Committed): void {
    observe(commitSeconds[place], commitMs / 1000)
    if (syncMs !== undefined) observe(fsyncSeconds[place], syncMs / 1000)
  }

  // Counted from the arrival of the first write, so that waits in the queue do not add up.
  function toDeadline([first]: readonly SqliteWrite[]): number {
    return (first?.arrivedAt ?? 0) + lockTimeoutMs
  }

  /** Starts a thread. Until it is ready, an adaptive writer commits in place. */
  function moveToThread(): void {
    if (file === undefined || opening !== undefined || thread !== undefined) return
    opening = openThread(file, loseThread).then(useThread, loseThread)
  }

  function useThread(opened: Thread): void {
    opening = undefined
    thread = opened
    slowInARow = 0
    quickInARow = 0
  }

  function loseThread(): void {
    opening = undefined
    thread = undefined
    slowInARow = 0
    slowCommitsNeeded *= slowCommitsGrowth
  }

  function leaveThread(current: Thread): void {
    thread = undefined
    slowInARow = 0
    leaving = current.close()
  }

  return {
    commit,
    commitInPlace,
    measures: { commitSeconds: toPlaced(commitSeconds), fsyncSeconds: toPlaced(fsyncSeconds) },
    commitDelayMs() {
      return thread === undefined ? 0 : Math.min(lastSyncMs * commitDelayShare, maxCommitDelayMs)
    },
    async close() {
      await opening
      await thread?.close()
      await leaving
    },
  }
}

type Place = 'main' | 'thread'

function buildSeconds(): Record<Place, Histogram> {
  return { main: buildHistogram(secondsBounds), thread: buildHistogram(secondsBounds) }
}

function toPlaced(seconds: Record<Place, Histogram>): PlacedSeconds {
  return Object.entries(seconds) as [Place, Histogram][]
}

function toChange({ change }: SqliteWrite): SqliteChange {
  return change
}

/** The file for a thread to open. A database in memory has one connection only. */
function toFile(db: DatabaseSync): ThreadFile | undefined {
  const path = db.location()
  return path === null ? undefined : { path, settings: readSettings(db) }
}
