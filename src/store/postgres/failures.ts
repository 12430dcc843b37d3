import { Failure } from '../../contract/errors.ts'
import { StaleRows } from './plants.ts'

/** An error that the server reported. `code` is its SQLSTATE. */
interface ServerError extends Error {
  readonly code: string
  readonly severity: string
}

function isServerError(error: unknown): error is ServerError {
  return error instanceof Error && error.name === 'PostgresError'
}

/** The code of an error, of the server's or of the connection's: `28P01`, `ECONNREFUSED`. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** Two transactions stood in each other's way; the server undid this one, and it can be sent again. */
export function isCollision(error: unknown): boolean {
  if (error instanceof StaleRows) return true
  return isServerError(error) && (error.code === '40001' || error.code === '40P01')
}

/** The server is no longer one that takes writes: it became a standby, or is about to stop. */
export function isUnwritable(error: unknown): boolean {
  return isServerError(error) && error.code === '25006'
}

/** We stopped waiting. The server may still be at it. */
export function isTimeout(error: unknown): boolean {
  return codeOf(error) === 'TIMEOUT'
}

/** The connection is gone, or the server ended it: what was sent may have been done. */
export function isLoss(error: unknown): boolean {
  return isServerError(error) ? error.severity !== 'ERROR' : codeOf(error) !== ''
}

export function unreachable(cause?: unknown): Failure {
  return new Failure(
    50301,
    'The store cannot be reached and nothing was stored. Try again later.',
    { cause },
  )
}

export function unconfirmed(cause?: unknown): Failure {
  return new Failure(
    50400,
    'The store did not confirm the write, so the plant may or may not be stored. Ask for it by its id, or retry with the same id.',
    { cause },
  )
}

/** What a caller hears of a write that was sent and failed. An error of the server undid it; a loss may not have. */
export function toWriteFailure(error: unknown): unknown {
  if (isLoss(error)) return unconfirmed(error)
  if (codeOf(error) === '53100') {
    return new Failure(
      50700,
      'The disk is full and nothing was stored. Plants can still be read.',
      {
        cause: error,
      },
    )
  }
  return toReadFailure(error)
}

/** What a caller hears of a read that failed. Nothing can have been stored. */
export function toReadFailure(error: unknown): unknown {
  const isPassing = isLoss(error) || isCollision(error) || isUnwritable(error)
  return isPassing || passingClasses.includes(codeOf(error).slice(0, 2))
    ? unreachable(error)
    : error
}

// Classes of SQLSTATE that say "not now": resources, an operator's intervention, the server's own system.
const passingClasses = ['53', '55', '57', '58']
