import { diskFailed, diskFull, locked, unconfirmed, unreachable } from '../failures.ts'

// Primary result codes of SQLite.
const busy = 5
const readOnly = 8
const ioError = 10
const corrupt = 11
const full = 13
const cannotOpen = 14
const notADatabase = 26
/** Extended code: the shared-memory file, which is on the same disk, cannot grow. */
const noSharedMemory = 4874

export interface SqliteError extends Error {
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

/** There is too little space to open a database or a file beside it. */
export function isOutOfSpace(error: unknown): boolean {
  if (isFull(error)) return true
  if (isSqliteError(error)) return error.errcode === noSharedMemory
  return error instanceof Error && 'code' in error && error.code === 'ENOSPC'
}

/** The disk reports an error, other than that it is full. */
export function isIoError(error: unknown): boolean {
  return isCode(error, ioError)
}

export function isNotADatabase(error: unknown): boolean {
  return isCode(error, notADatabase)
}

/** Explains why SQLite could not open or read a file. */
export function explainSqlite({ errcode, message }: SqliteError): string {
  if (errcode === noSharedMemory) return 'the disk is full'
  return reasons[errcode & 0xff] ?? message
}

const reasons: Record<number, string> = {
  [busy]: 'the database is locked by another process',
  [readOnly]: 'it cannot be written',
  [ioError]: 'the disk reports an error',
  [corrupt]: 'it is damaged; restore a backup',
  [notADatabase]: 'it is damaged; restore a backup',
  [full]: 'the disk is full',
  [cannotOpen]:
    'it cannot be opened; check the permissions of the file and its folder, and the limit of open files',
}

/** The failure of a transaction before its COMMIT began: nothing was stored. */
export function toRefusal(error: unknown): unknown {
  if (isOutOfSpace(error)) return diskFull(error)
  if (isBusy(error)) return locked()
  if (isCode(error, cannotOpen)) return unreachable(error)
  return isIoError(error) ? diskFailed(error) : error
}

/** Runs a read, whose failure is a refusal. */
export function read<Value>(run: () => Value): Value {
  try {
    return run()
  } catch (error) {
    throw toRefusal(error)
  }
}

/**
 * The failure of COMMIT itself. After an I/O error its frames may be in the WAL, and recovery after
 * a crash would bring them back: the plant may or may not be stored.
 */
export function toCommitFailure(error: unknown): unknown {
  return isIoError(error) ? unconfirmed(error) : toRefusal(error)
}
