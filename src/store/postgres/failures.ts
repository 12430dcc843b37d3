import { diskFull, unconfirmed, unreachable } from '../failures.ts'

/** An error that the server reported. `code` is its SQLSTATE. */
interface ServerError extends Error {
  readonly code: string
  readonly severity: string
}

function isServerError(error: unknown): error is ServerError {
  return error instanceof Error && error.name === 'PostgresError'
}

/** Another transaction changed the rows meanwhile: decisions made from them must be made again. */
export class StaleRows extends Error {
  constructor() {
    super('the rows were changed by another transaction')
    this.name = 'StaleRows'
  }
}

/** The driver mixed up the rows of a result: its connection cannot be used any more. */
export class RowsMissing extends Error {
  readonly code = 'ROWS_MISSING'
  constructor() {
    super('the driver left rows out of a result')
    this.name = 'RowsMissing'
  }
}

/** The code of an error, the server's or the connection's: `28P01`, `ECONNREFUSED`. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** Two transactions collided. The server rolled this one back, and it can be sent again. */
export function isCollision(error: unknown): boolean {
  if (error instanceof StaleRows) return true
  return isServerError(error) && (error.code === '40001' || error.code === '40P01')
}

/** The server takes no writes any more: it became a standby, or is about to stop. */
export function isUnwritable(error: unknown): boolean {
  return isServerError(error) && error.code === '25006'
}

/** We stopped waiting. The server may still be working on it. */
export function isTimeout(error: unknown): boolean {
  return codeOf(error) === 'TIMEOUT'
}

/** The connection was lost, or the server ended it. A statement that was sent may have run. */
export function isLoss(error: unknown): boolean {
  return isServerError(error) ? error.severity !== 'ERROR' : codeOf(error) !== ''
}

/** The failure of a write that was sent. The server's own errors undid it; a loss may not have. */
export function toWriteFailure(error: unknown): unknown {
  if (isLoss(error)) return unconfirmed(error)
  return codeOf(error) === '53100' ? diskFull(error) : toReadFailure(error)
}

/** The failure of a read. Nothing can have been stored. */
export function toReadFailure(error: unknown): unknown {
  const isPassing = isLoss(error) || isCollision(error) || isUnwritable(error)
  return isPassing || passingClasses.includes(codeOf(error).slice(0, 2))
    ? unreachable(error)
    : error
}

// Classes of SQLSTATE that mean "not now": resources, the operator, the server's own system.
const passingClasses = ['53', '55', '57', '58']
