import { diskFailed, diskFull, locked, unconfirmed } from '../failures.ts'

// Primary result codes of SQLite.
const busy = 5
const ioError = 10
const full = 13
const notADatabase = 26

interface SqliteError extends Error {
  readonly errcode: number
}

export function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
}

function isCode(error: unknown, code: number): boolean {
  return isSqliteError(error) && (error.errcode & 0xff) === code
}

/** Another process holds the lock. */
export function isBusy(error: unknown): boolean {
  return isCode(error, busy)
}

/** The disk has no space left. */
export function isFull(error: unknown): boolean {
  return isCode(error, full)
}

export function isNotADatabase(error: unknown): boolean {
  return isCode(error, notADatabase)
}

/** A transaction failed before its COMMIT began: it left nothing behind. */
export function toRefusal(error: unknown): unknown {
  if (isFull(error)) return diskFull(error)
  if (isBusy(error)) return locked()
  return isCode(error, ioError) ? diskFailed(error) : error
}

/**
 * The COMMIT itself failed. After an I/O error its frames may be in the log, and the recovery after
 * a crash would bring them back: nobody knows whether the plant is stored.
 */
export function toCommitFailure(error: unknown): unknown {
  return isCode(error, ioError) ? unconfirmed(error) : toRefusal(error)
}
