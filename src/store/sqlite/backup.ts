import { existsSync, statSync } from 'node:fs'
import { backup, type DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { followLink } from '../../paths.ts'
import { separate } from '../receivers.ts'
import { type FileSummary, UnusableStore } from '../store.ts'
import { schemaVersion } from '../tables.ts'
import { explainOpening, openTimeoutMs, readVersion } from './connection.ts'
import { buildStepRunner, openDatabase, readPragma, setSynchronous } from './database.ts'
import { hasCode, isSqliteError } from './failures.ts'
import { identifyFile } from './file.ts'
import { findTrigger } from './migrations.ts'

/** The version of the schema in release 1.1.0, the first one with a journal and receivers. */
const journalVersion = 6
/** The pages copied in one step: 8 MiB. */
const pagesPerStep = 2_000

/** A file is not a usable backup. The message follows the name of the file: `is damaged.` */
export class UnusableBackup extends Error {}

/**
 * Copies a database into a new file while others write to it. The copy runs inside a read
 * transaction; otherwise each write of another process would restart it.
 */
export async function backUp(
  path: string,
  draft: string,
  onProgress: (done: number, total: number) => void,
): Promise<FileSummary> {
  const db = openSource(path)
  try {
    db.exec('BEGIN')
    if (readVersion(db, path) === 0) throw noStore(path)
    await backup(db, draft, {
      rate: pagesPerStep,
      progress: ({ totalPages, remainingPages }) =>
        onProgress(totalPages - remainingPages, totalPages),
    })
    toSingleFile(draft)
    return check(draft)
  } catch (error) {
    if (hasCode(error, 'full')) throw diskFull(error)
    throw error instanceof UnusableBackup ? damagedSource(path, error) : explainOpening(error, path)
  } finally {
    db.close()
  }
}

function openSource(path: string): DatabaseSync {
  try {
    if (identifyFile(path) === 'new') throw noStore(path)
    return openDatabase(pathToFileURL(path), { readOnly: true, timeout: openTimeoutMs })
  } catch (error) {
    throw explainOpening(error, path)
  }
}

function noStore(path: string): UnusableStore {
  return new UnusableStore(`${path} is empty: no store was made yet.`)
}

function damagedSource(path: string, cause: unknown): UnusableStore {
  return new UnusableStore(`${path} is damaged: nothing was kept. Restore its last backup.`, {
    cause,
  })
}

/** The system error for a full disk: it is the draft that has no space, not the source. */
function diskFull(cause: unknown): Error {
  return Object.assign(new Error('no space left', { cause }), { code: 'ENOSPC', syscall: 'write' })
}

// In this mode the database is one file, so none is forgotten when a backup is moved.
function toSingleFile(path: string): void {
  const db = openDatabase(path)
  try {
    setSynchronous(db, 'FULL')
    db.exec('PRAGMA journal_mode = DELETE')
  } finally {
    db.close()
  }
}

/** The file that blocks a restore to this path. SQLite would apply a WAL that it finds there. */
export function findObstacle(path: string): string | undefined {
  return existsSync(path) ? path : findWal(path)
}

/** The WAL or rollback journal of a database, if it is not empty. A backup has neither. */
export function findWal(path: string): string | undefined {
  const logs = ['-wal', '-journal'].map((suffix) => followLink(path) + suffix)
  return logs.find((log) => existsSync(log) && statSync(log).size > 0)
}

/** Checks a backup from beginning to end. Throws `UnusableBackup`. */
export function checkBackup(path: string): FileSummary {
  try {
    return check(path)
  } catch (error) {
    if (error instanceof UnusableStore || hasCode(error, 'notADatabase')) {
      throw new UnusableBackup('is not a backup of Plant Store.', { cause: error })
    }
    throw isSqliteError(error) ? damaged(error) : error
  }
}

function check(path: string): FileSummary {
  if (identifyFile(path) !== 'ours') throw new UnusableBackup('is empty.')
  // Immutable, so that SQLite neither reads nor creates a WAL.
  const url = pathToFileURL(path)
  url.searchParams.set('immutable', '1')
  const db = openDatabase(url, { readOnly: true })
  try {
    if (Number(readPragma(db, 'user_version')) > schemaVersion) {
      throw new UnusableBackup('was written by a newer release. Restore it with that release.')
    }
    // Before the integrity check, which evaluates expressions from the schema.
    const trigger = findTrigger(db)
    if (trigger !== undefined) {
      throw new UnusableBackup(`has ${trigger}. Restore another backup.`)
    }
    const integrity = readPragma(db, 'integrity_check(1)')
    if (integrity !== 'ok') throw damaged(integrity)
    return countRows(db)
  } finally {
    db.close()
  }
}

/** Gives a restored backup a journal of its own, and pauses its receivers. */
export function separateJournal(path: string): void {
  const db = openDatabase(path)
  try {
    setSynchronous(db, 'FULL')
    // Release 1.0.0 had neither journal nor receivers.
    if (Number(readPragma(db, 'user_version')) < journalVersion) return
    buildStepRunner(db)(separate('restored from a backup'))
  } finally {
    db.close()
  }
}

function damaged(cause: unknown): UnusableBackup {
  return new UnusableBackup('is damaged. Restore another backup.', { cause })
}

function countRows(db: DatabaseSync): FileSummary {
  const row = db
    .prepare(
      'SELECT (SELECT count(*) FROM plants) AS plants, (SELECT count(*) FROM tokens) AS tokens',
    )
    .get() as { plants: number; tokens: number }
  return { plants: row.plants, tokens: row.tokens }
}
