import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { explainFile } from '../file-errors.ts'
import { UnusableStore } from '../store.ts'
import { assertCommitsAreSynced } from './durability.ts'
import { explainSqlite, isNotADatabase, isSqliteError } from './failures.ts'
import { makeFolder } from './folder.ts'
import { migrations } from './migrations.ts'

/** Marks a file as ours in its header: "plst". */
const applicationId = 0x706c7374
/** What the journal of a transaction begins with. */
const journalMark = Buffer.from('d9d505f920a163d7', 'hex')
/** Older releases can corrupt a write-ahead log that two connections use. */
const oldestSqlite = [3, 51, 3]
/** How long opening waits for another process that migrates or holds the lock. */
const openTimeoutMs = 5_000
/** How long a statement blocks the event loop for a lock; beyond it, the writer waits without blocking. */
export const busyTimeoutMs = 20

/**
 * Room for every inner page of a store of tens of millions of plants, so that a get reads one page of the file and not two.
 * The leaves are the system's to cache. Snapshots keep SQLite's 2 MB: a walk comes to each page once.
 */
const cacheKib = 8_000

export const memoryPath = ':memory:'

/** Opens the file, makes it if it is missing, brings its schema up to date, and refuses what is not ours. */
export function openConnection(path: string, timeoutMs = openTimeoutMs): DatabaseSync {
  try {
    return path === memoryPath ? openInMemory() : openOnDisk(path, timeoutMs)
  } catch (error) {
    throw explain(error, path)
  }
}

function openInMemory(): DatabaseSync {
  const db = new DatabaseSync(memoryPath, { readBigInts: true })
  migrate(db, memoryPath)
  return db
}

function openOnDisk(path: string, timeoutMs: number): DatabaseSync {
  prepareFile(path)
  assertCommitsAreSynced(path, openDurably)
  const db = openFile(path)
  try {
    db.exec(`PRAGMA busy_timeout = ${timeoutMs}; PRAGMA cache_size = -${cacheKib}`)
    requireRecentSqlite(db)
    if (isEmpty(db)) db.exec(`PRAGMA application_id = ${applicationId}`)
    makeDurable(db, path)
    migrate(db, path)
    db.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** What is set on a connection beside what makes it durable, as the statements that set it. */
export function readSettings(db: DatabaseSync): string {
  return ['cache_size', 'wal_autocheckpoint', 'max_page_count']
    .map((name) => `PRAGMA ${name} = ${Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0]}`)
    .join('; ')
}

/** Opens a second connection to a file that is open, with the settings of the first and the same proof that it syncs. */
export function openBeside(path: string, settings: string): DatabaseSync {
  assertCommitsAreSynced(path, openDurably)
  const db = openDurably(path, { mode: 'rw' })
  db.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}; ${settings}`)
  return db
}

/** What an operator hears of an error while opening: one line, whatever it was. */
export function explain(error: unknown, path: string): unknown {
  if (isNotADatabase(error)) return foreignFile(path)
  return isSqliteError(error) || isFileError(error) ? cannotOpen(path, error) : error
}

function isFileError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error
}

// Asked of SQLite and not of the file: it may just have undone what a crash in the middle of the first start left.
function isEmpty(db: DatabaseSync): boolean {
  const row = db.prepare('PRAGMA page_count').get() as { page_count: bigint }
  return row.page_count === 0n
}

function prepareFile(path: string): void {
  makeFolder(dirname(path))
  // Made here, because SQLite would make it readable for everybody. Its log files take over the mode.
  const file = openSync(path, openFlags, 0o600)
  try {
    requireRegular(file, path)
    identify(file, path)
  } finally {
    closeSync(file)
  }
}

/** Does not block: a read of a pipe could wait for ever. */
const openFlags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK

function requireRegular(file: number, path: string): void {
  if (fstatSync(file).isFile()) return
  throw new UnusableStore(`Cannot open the database ${path}: it is not a regular file.`)
}

/** Whose file it is, without changing it. */
export function identifyFile(path: string): 'new' | 'ours' {
  const file = openSync(path, 'r')
  try {
    return identify(file, path)
  } finally {
    closeSync(file)
  }
}

// Read from the header and not through SQLite, so that a file of somebody else is not touched.
function identify(file: number, path: string): 'new' | 'ours' {
  const header = Buffer.alloc(72)
  const bytes = readSync(file, header, 0, header.length, 0)
  if (bytes === 0 || isUnfinished(header, path)) return 'new'
  const isSqlite = header.toString('latin1', 0, 16) === 'SQLite format 3\0'
  if (!isSqlite || header.readUInt32BE(68) !== applicationId) throw foreignFile(path)
  return 'ours'
}

// A power cut in the middle of the first start can leave a file without a beginning, and a journal to undo it with.
function isUnfinished(header: Buffer, path: string): boolean {
  const journal = `${path}-journal`
  if (header.some((byte) => byte !== 0) || !existsSync(journal)) return false
  return readFileSync(journal).subarray(0, journalMark.length).equals(journalMark)
}

function openFile(path: string, parameters: Record<string, string> = {}): DatabaseSync {
  const url = pathToFileURL(path)
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return new DatabaseSync(url, { readBigInts: true })
}

function openDurably(path: string, parameters: Record<string, string>): DatabaseSync {
  const db = openFile(path, parameters)
  makeDurable(db, path)
  return db
}

function requireRecentSqlite(db: DatabaseSync): void {
  const row = db.prepare('SELECT sqlite_version() AS version').get() as { version: string }
  const version = row.version.split('.').map(Number)
  const difference = oldestSqlite.map((part, index) => (version[index] ?? 0) - part).find(Boolean)
  if ((difference ?? 0) >= 0) return
  throw new UnusableStore(
    `This Node.js brings SQLite ${row.version}, which can corrupt a database; ${oldestSqlite.join('.')} or newer is needed. Use the Node.js version that the README names.`,
  )
}

/** A commit is in the log, and the log on the disk, when it returns. */
export function makeDurable(db: DatabaseSync, path: string): void {
  const row = db.prepare('PRAGMA journal_mode = WAL').get() as { journal_mode: string }
  if (row.journal_mode !== 'wal') {
    throw new UnusableStore(
      `The file system of ${path} cannot keep a SQLite write-ahead log. Put DATABASE_URL on a local disk.`,
    )
  }
  db.exec('PRAGMA synchronous = FULL')
}

function migrate(db: DatabaseSync, path: string): void {
  db.exec('BEGIN IMMEDIATE')
  try {
    const row = db.prepare('PRAGMA user_version').get() as { user_version: bigint }
    const current = Number(row.user_version)
    if (current > migrations.length) {
      throw new UnusableStore(
        `${path} was written by a newer release (schema ${current}, this one knows ${migrations.length}). Use that release, or another DATABASE_URL.`,
      )
    }
    for (const step of migrations.slice(current)) db.exec(step)
    if (current < migrations.length) db.exec(`PRAGMA user_version = ${migrations.length}`)
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function foreignFile(path: string): UnusableStore {
  return new UnusableStore(
    `${path} is not a database of Plant Store and was not touched. Name another path.`,
  )
}

function cannotOpen(path: string, cause: unknown): UnusableStore {
  const reason = isSqliteError(cause) ? explainSqlite(cause) : explainFile(cause)
  return new UnusableStore(`Cannot open the database ${path}: ${reason}.`, { cause })
}
