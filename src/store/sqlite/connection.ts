import type { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { explainErrno } from '../../errno.ts'
import { followLink } from '../../paths.ts'
import { type Journaling, type Migration, type StoreEvents, UnusableStore } from '../store.ts'
import { requireKnown, schemaVersion, toMigration } from '../tables.ts'
import { openDatabase, readPragma, setSynchronous } from './database.ts'
import { explainSqlite, hasCode, isSqliteError } from './failures.ts'
import { applicationId, foreignFile, isNewFile, prepareFile } from './file.ts'
import { isJournaling, switchJournal } from './journal.ts'
import { findTrigger, upgrade } from './migrations.ts'

/** Older releases can corrupt a WAL that two connections use. */
const oldestSqlite = [3, 51, 3]
/** How long opening waits for a process that migrates or holds the lock. */
export const openTimeoutMs = 5_000
/** How long a statement blocks the event loop for a lock. Then the writer waits without that. */
export const busyTimeoutMs = 20

/**
 * Holds all inner pages of a store of tens of millions of plants, so that a get reads one page of
 * the file instead of two. The system caches the leaves. Snapshots keep SQLite's default of 2 MB,
 * because a walk reads each page once.
 */
const cacheKib = 8_000

/** SQLite truncates the WAL to this size when it resets it. By default it would never shrink. */
const keptWalBytes = 16 * 1024 * 1024

const memoryPath = ':memory:'

/** SQLite keeps a database without a name in a temporary file, which it removes. */
const scratchPath = ''
const scratchKib = 16_000

export interface ConnectionOptions extends Pick<StoreEvents, 'onMigrated' | 'onNew'> {
  readonly timeoutMs?: number
  /** Whether changes are journaled, by every process of the store. */
  readonly journaling?: Journaling
}

/** Opens the file, or creates it, and migrates it. Refuses a file that is not ours. */
export function openConnection(path: string, options: ConnectionOptions = {}): DatabaseSync {
  try {
    return path === memoryPath || path === scratchPath
      ? openPrivate(path, options)
      : openOnDisk(followLink(path), options)
  } catch (error) {
    throw explainOpening(error, path)
  }
}

function openPrivate(path: string, { journaling }: ConnectionOptions): DatabaseSync {
  const db = openDatabase(path, { readBigInts: true })
  // A temporary file needs no log on the disk, and a larger cache halves the time of a dry run.
  db.exec(`PRAGMA journal_mode = MEMORY; PRAGMA cache_size = -${scratchKib}`)
  migrate(db, path)
  setJournaling(db, journaling)
  return db
}

function openOnDisk(
  path: string,
  { timeoutMs = openTimeoutMs, journaling, onMigrated, onNew }: ConnectionOptions,
): DatabaseSync {
  if (isNewFile(path)) onNew?.()
  prepareFile(path)
  const db = openDatabase(pathToFileURL(path), { readBigInts: true })
  try {
    db.exec(`PRAGMA busy_timeout = ${timeoutMs}; PRAGMA cache_size = -${cacheKib}`)
    db.exec(`PRAGMA journal_size_limit = ${keptWalBytes}`)
    readSqliteVersion(db)
    setSynchronous(db, 'FULL')
    // Asks SQLite, not the file: it may just have rolled back a crashed first start.
    const isEmpty = readPragma(db, 'page_count') === 0n
    if (isEmpty) db.exec(`PRAGMA application_id = ${applicationId}`)
    useWal(db, path)
    const migration = migrate(db, path)
    if (migration !== undefined) onMigrated?.(migration)
    setJournaling(db, journaling)
    db.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Turns an error from opening a file into one line for the operator. */
export function explainOpening(error: unknown, path: string): unknown {
  if (hasCode(error, 'notADatabase')) return foreignFile(path)
  const isFileError = error instanceof Error && 'syscall' in error
  if (!isSqliteError(error) && !isFileError) return error
  const reason = isSqliteError(error) ? explainSqlite(error) : explainErrno(error)
  return new UnusableStore(`Cannot open the database ${path}: ${reason}.`, { cause: error })
}

/** The release of SQLite. Throws for one that can corrupt a database. */
export function readSqliteVersion(db: DatabaseSync): string {
  const row = db.prepare('SELECT sqlite_version() AS version').get() as { version: string }
  const version = row.version.split('.').map(Number)
  const difference = oldestSqlite.map((part, index) => (version[index] ?? 0) - part).find(Boolean)
  if ((difference ?? 0) >= 0) return row.version
  throw new UnusableStore(
    `This Node.js brings SQLite ${row.version}, which can corrupt a database; ${oldestSqlite.join('.')} or newer is needed. Use Node.js 24.18.1 or newer.`,
  )
}

/** Keeps commits in a write-ahead log. */
function useWal(db: DatabaseSync, path: string): void {
  if (readPragma(db, 'journal_mode = WAL') === 'wal') return
  throw new UnusableStore(
    `The file system of ${path} cannot keep a SQLite write-ahead log. Put DATABASE_URL on a local disk.`,
  )
}

/** The version of the schema. Refuses that of a newer release, and a trigger on our tables. */
export function readVersion(db: DatabaseSync, path: string): number {
  const version = Number(readPragma(db, 'user_version'))
  requireKnown(version, path)
  const trigger = findTrigger(db)
  if (trigger === undefined) return version
  throw new UnusableStore(
    `${path} has ${trigger} and was not opened. Restore a backup from before it was changed.`,
  )
}

/** Brings the schema up to date. Returns the migration if the store is of an older release. */
function migrate(db: DatabaseSync, path: string): Migration | undefined {
  // In a transaction, because another process may migrate the file.
  let from = inTransaction(db, 'BEGIN', () => readVersion(db, path))
  if (from === schemaVersion) return undefined
  let startedAt = 0
  inTransaction(db, 'BEGIN IMMEDIATE', () => {
    startedAt = performance.now()
    from = readVersion(db, path)
    upgrade(db, from)
  })
  return toMigration(from, startedAt)
}

function setJournaling(db: DatabaseSync, wanted: Journaling = 'as before'): void {
  const isAsWanted = () => wanted === 'as before' || isJournaling(db) === (wanted === 'on')
  if (isAsWanted()) return
  inTransaction(db, 'BEGIN IMMEDIATE', () => {
    if (!isAsWanted()) switchJournal(db)
  })
}

function inTransaction<Value>(db: DatabaseSync, begin: string, use: () => Value): Value {
  db.exec(begin)
  try {
    const value = use()
    db.exec('COMMIT')
    return value
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}
