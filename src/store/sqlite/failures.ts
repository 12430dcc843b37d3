import { Failure } from '../../contract/errors.ts'

// Primary result codes of SQLite.
const busy = 5
const ioError = 10
const full = 13
const notADatabase = 26

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

/** There is no space left on the disk. */
export function isFull(error: unknown): boolean {
  return isCode(error, full)
}

export function isNotADatabase(error: unknown): boolean {
  return isCode(error, notADatabase)
}

/** Another process kept the lock for too long. */
export function locked(): Failure {
  return new Failure(
    50301,
    'Another process keeps the database locked, and nothing was stored. Try again later.',
  )
}

/** What a caller hears when a transaction failed before its COMMIT began: it left nothing behind. */
export function toRefusal(error: unknown): unknown {
  if (isFull(error)) {
    return new Failure(
      50700,
      'The disk is full and nothing was stored. Plants can still be read.',
      { cause: error },
    )
  }
  if (isBusy(error)) return locked()
  if (isCode(error, ioError)) {
    return new Failure(
      50301,
      'The disk reports an error and nothing was stored. Try again later.',
      { cause: error },
    )
  }
  return error
}

/**
 * What a caller hears when the COMMIT itself failed. After an I/O error the frames may be in the log, and the
 * recovery that follows a crash would bring them back: whether the plant is stored is not known.
 */
export function toCommitFailure(error: unknown): unknown {
  return isCode(error, ioError) ? unconfirmed(error) : toRefusal(error)
}

/** Nobody can say whether a batch is stored. */
export function unconfirmed(cause: unknown): Failure {
  return new Failure(
    50400,
    'The disk did not confirm the write, so the plant may or may not be stored. Ask for it by its id, or retry with the same id.',
    { cause },
  )
}
