import { copyFileSync, existsSync, statSync } from 'node:fs'
import { backup, DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { type FileSummary, UnusableStore } from '../store.ts'
import { explain } from './connection.ts'
import { isFull } from './failures.ts'
import { identifyFile } from './file.ts'
import { migrations } from './migrations.ts'

/** How many pages are copied at once: 8 MiB or so. */
const pagesPerStep = 2_000

/**
 * Copies a database that others may be writing to into a new file. A transaction holds one moment of it: without one,
 * the copy would begin again with every write of another process.
 */
export async function backUp(
  path: string,
  draft: string,
  onProgress: (done: number, total: number) => void,
): Promise<FileSummary> {
  const db = openSource(path)
  try {
    const before = summarize(db)
    await backup(db, draft, {
      rate: pagesPerStep,
      progress: ({ totalPages, remainingPages }) =>
        onProgress(totalPages - remainingPages, totalPages),
    })
    toSingleFile(draft)
    requireSame(before, check(draft), draft)
    return before
  } catch (error) {
    throw isFull(error) ? diskFull(error) : explain(error, path)
  } finally {
    db.close()
  }
}

function openSource(path: string): DatabaseSync {
  try {
    identifyFile(path)
    const db = new DatabaseSync(path, { readOnly: true })
    db.exec('BEGIN')
    return db
  } catch (error) {
    throw explain(error, path)
  }
}

/** As the system says it: it is the file being written that has no space. */
function diskFull(cause: unknown): Error {
  return Object.assign(new Error('no space left', { cause }), { code: 'ENOSPC', syscall: 'write' })
}

/** Copies a backup into a new file, after and before it was checked. */
export function restore(file: string, path: string, draft: string): FileSummary {
  requireEmptyPlace(path)
  requireNoLog(file)
  const before = checkBackup(file)
  copyFileSync(file, draft)
  requireSame(before, checkBackup(draft), draft)
  return before
}

function checkBackup(file: string): FileSummary {
  try {
    return check(file)
  } catch (error) {
    throw explain(error, file)
  }
}

/** The files that a database in use leaves beside itself would be taken for parts of the new one. */
function requireEmptyPlace(path: string): void {
  const taken = existsSync(path) ? path : findLog(path)
  if (taken === undefined) return
  throw new UnusableStore(
    `${taken} exists and was not touched. Restore into a new place, or move it away.`,
  )
}

/** The log of a database with something in it, beside its file. */
function findLog(path: string): string | undefined {
  const logs = ['-wal', '-journal'].map((suffix) => path + suffix)
  return logs.find((log) => existsSync(log) && statSync(log).size > 0)
}

/** What is in a log and not in the file would be lost. A backup has none. */
function requireNoLog(file: string): void {
  const log = findLog(file)
  if (log === undefined) return
  throw new UnusableStore(
    `${log} stands beside ${file} and belongs to it: this is a store that is in use or was not closed, and no backup. Start the service on it, or make a backup of it.`,
  )
}

// A log beside it would be forgotten when somebody moves the file.
function toSingleFile(path: string): void {
  const db = new DatabaseSync(path)
  try {
    db.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL')
  } finally {
    db.close()
  }
}

function check(path: string): FileSummary {
  if (identifyFile(path) !== 'ours') throw new UnusableStore(`${path} is empty: it is no backup.`)
  // Read as it is: no log is looked for, and none is made.
  const url = pathToFileURL(path)
  url.searchParams.set('immutable', '1')
  const db = new DatabaseSync(url, { readOnly: true })
  try {
    const [first] = db.prepare('PRAGMA integrity_check(1)').all() as { integrity_check: string }[]
    if (first?.integrity_check !== 'ok') {
      const reason = first?.integrity_check.replaceAll('\n', ' ')
      throw new UnusableStore(`${path} is damaged: ${reason}`)
    }
    const row = db.prepare('PRAGMA user_version').get() as { user_version: number }
    if (row.user_version > migrations.length) {
      throw new UnusableStore(`${path} was written by a newer release: use that one.`)
    }
    return summarize(db)
  } finally {
    db.close()
  }
}

function summarize(db: DatabaseSync): FileSummary {
  const row = db
    .prepare(
      'SELECT (SELECT count(*) FROM plants) AS plants, (SELECT count(*) FROM tokens) AS tokens',
    )
    .get() as { plants: number; tokens: number }
  return { plants: row.plants, tokens: row.tokens }
}

function requireSame(before: FileSummary, after: FileSummary, path: string): void {
  if (before.plants === after.plants && before.tokens === after.tokens) return
  throw new UnusableStore(`${path} does not hold what was copied into it: the disk may be failing.`)
}
