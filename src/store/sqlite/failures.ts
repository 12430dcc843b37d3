import { diskFailed, diskFull, locked, unconfirmed, unreachable } from '../failures.ts'

/** Primary result codes of SQLite. */
const codes = {
  busy: 5,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
}
/** Extended code: the shared-memory file, which is on the same disk, cannot grow. */
const noSharedMemory = 4874

export interface SqliteError extends Error {
  readonly errcode: number
}

export function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
}

/** Whether SQLite has failed with this code. An I/O error is any but that of a full disk. */
export function hasCode(error: unknown, code: keyof typeof codes): boolean {
  return isSqliteError(error) && (error.errcode & 0xff) === codes[code]
}

/** There is too little space to open a database or a file beside it. */
export function isOutOfSpace(error: unknown): boolean {
  if (hasCode(error, 'full')) return true
  if (isSqliteError(error)) return error.errcode === noSharedMemory
  return error instanceof Error && 'code' in error && error.code === 'ENOSPC'
}

/** Explains why SQLite could not open or read a file. */
export function explainSqlite({ errcode, message }: SqliteError): string {
  if (errcode === noSharedMemory) return 'the disk is full'
  return reasons[errcode & 0xff] ?? message
}

const reasons: Record<number, string> = {
  [codes.busy]: 'the database is locked by another process',
  [codes.readOnly]: 'it cannot be written',
  [codes.ioError]: 'the disk reports an error',
  [codes.corrupt]: 'it is damaged; restore a backup',
  [codes.notADatabase]: 'it is damaged; restore a backup',
  [codes.full]: 'the disk is full',
  [codes.cannotOpen]:
    'it cannot be opened; check the permissions of the file and its folder, and the limit of open files',
}

/** The failure of a transaction before its COMMIT began: nothing was stored. */
export function toRefusal(error: unknown): unknown {
  if (isOutOfSpace(error)) return diskFull(error)
  if (hasCode(error, 'busy')) return locked()
  if (hasCode(error, 'cannotOpen')) return unreachable(error)
  return hasCode(error, 'ioError') ? diskFailed(error) : error
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
  return hasCode(error, 'ioError') ? unconfirmed(error) : toRefusal(error)
}
