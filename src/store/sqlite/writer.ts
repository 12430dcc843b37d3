import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildBatches } from './batches.ts'
import type { SqliteChange, Statements } from './changes.ts'
import { busyTimeoutMs, readSettings } from './connection.ts'
import { locked } from './failures.ts'
import { openThread, type Thread, type ThreadFile } from './thread.ts'

/** Where batches are committed: in place while the disk is quick and in a thread while it is slow, or always the same way. */
export type WriterLocation = 'adaptive' | 'in place' | 'thread'

export interface WriterOptions {
  readonly location: WriterLocation
  /** How long a batch waits for the lock of another process. */
  readonly lockTimeoutMs: number
}

/** Changes that share a transaction, and when the first of them came. */
export interface Batch {
  readonly changes: readonly SqliteChange[]
  readonly arrivedAt: number
}

/** Commits batches, one at a time. */
export interface Writer {
  /** Answers one outcome for each change, when they are on disk. */
  commit(batch: Batch): unknown[] | Promise<unknown[]>
  /** How long a batch may wait for company. */
  commitDelayMs(): number
  /** Ends its thread, if there is one. No batch may be under way. */
  close(): Promise<void>
}

/** So many commits in a row, each of at least so long, are a slow disk: whoever reads would wait for its syncs. */
const slowCommits = 10
const slowMs = 4
/** So many in a row that are shorter than this are a quick one: there, the way to a thread and back costs more than it saves. */
const quickCommits = 50
const quickMs = 1
/** By what part of its commit a batch in the thread may be delayed to have more writes in it, and by how much at most. */
const commitDelayShare = 1 / 2
const maxCommitDelayMs = 5
/** How many more slow commits it takes to start a thread again after one was lost. */
const slowCommitsGrowth = 10
/** How long a batch sleeps between two looks for the lock of another process. */
const lockRetryMs = 2

export function openWriter(
  db: DatabaseSync,
  statements: Statements,
  { location, lockTimeoutMs }: WriterOptions,
): Writer {
  // Read now: nothing may fail behind a commit that has succeeded.
  const file = toFile(db)
  const batches = buildBatches(db, statements)
  let thread: Thread | undefined
  let opening: Promise<void> | undefined
  let leaving: Promise<void> | undefined
  let slowInARow = 0
  let quickInARow = 0
  let slowCommitsNeeded = slowCommits
  let lastCommitMs = 0
  if (location === 'thread') moveToThread()

  function commit(batch: Batch): unknown[] | Promise<unknown[]> {
    if (thread !== undefined) return commitInThread(thread, batch)
    if (location === 'thread' && opening !== undefined) return opening.then(() => commit(batch))
    return batches.tryBegin() ? runInPlace(batch) : commitWhenUnlocked(batch)
  }

  function runInPlace({ changes }: Batch): unknown[] {
    const { outcomes, commitMs } = batches.run(changes)
    slowInARow = commitMs < slowMs ? 0 : slowInARow + 1
    if (slowInARow >= slowCommitsNeeded && location === 'adaptive') moveToThread()
    return outcomes
  }

  async function commitWhenUnlocked(batch: Batch): Promise<unknown[]> {
    const deadline = toDeadline(batch)
    db.exec('PRAGMA busy_timeout = 0')
    try {
      while (!batches.tryBegin()) {
        if (performance.now() > deadline) throw locked()
        await sleep(lockRetryMs)
      }
    } finally {
      db.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    }
    return runInPlace(batch)
  }

  async function commitInThread(current: Thread, batch: Batch): Promise<unknown[]> {
    const waitMs = toDeadline(batch) - performance.now()
    const { outcomes, commitMs } = await current.commit(batch.changes, waitMs)
    lastCommitMs = commitMs
    quickInARow = commitMs < quickMs ? quickInARow + 1 : 0
    if (quickInARow >= quickCommits && location === 'adaptive') leaveThread(current)
    return outcomes
  }

  // From the arrival of the first: those that queue behind a batch do not wait once more.
  function toDeadline({ arrivedAt }: Batch): number {
    return arrivedAt + lockTimeoutMs
  }

  /** Starts a thread. Until it is ready, batches are committed in place. */
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
    commitDelayMs() {
      return thread === undefined ? 0 : Math.min(lastCommitMs * commitDelayShare, maxCommitDelayMs)
    },
    async close() {
      await opening
      await thread?.close()
      await leaving
    },
  }
}

/** What a thread has to open; a database in memory has one connection only. */
function toFile(db: DatabaseSync): ThreadFile | undefined {
  const path = db.location()
  return path === null ? undefined : { path, settings: readSettings(db) }
}
