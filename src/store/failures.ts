import { Failure } from '../contract/errors.ts'

/** The failures of a store. Engines map their own error codes to these. */

/** Nothing was stored: the store is unreachable or temporarily unable to serve. */
export function unreachable(cause?: unknown): Failure {
  return new Failure(
    50301,
    'The store cannot be reached and nothing was stored. Try again later.',
    { cause, shortMessage: 'The store cannot be reached.' },
  )
}

/** A transaction in flight may still add a change before a position that is asked for. */
export function unsettled(): Failure {
  return new Failure(
    50301,
    'A change that is not committed yet may still come before this position. Try again later.',
    { shortMessage: 'A transaction that does not end holds up the journal.' },
  )
}

/** The write was sent, but the store never reported its outcome. */
export function unconfirmed(cause?: unknown): Failure {
  return new Failure(
    50400,
    'The store did not confirm the write: it may or may not be stored, and a GET may not show it yet. Retry with the same id, and the same Idempotency-Key if there was one.',
    { cause, shortMessage: 'The store did not confirm the write.' },
  )
}

export function diskFull(cause?: unknown): Failure {
  return new Failure(50700, 'The disk is full and nothing was stored. Plants can still be read.', {
    cause,
    shortMessage: 'The disk is full.',
  })
}

export function diskFailed(cause?: unknown): Failure {
  return new Failure(50301, 'The disk reports an error and nothing was stored. Try again later.', {
    cause,
    shortMessage: 'The disk reports an error.',
  })
}

/** Another process held the lock for too long. */
export function locked(): Failure {
  return new Failure(
    50301,
    'Another process keeps the database locked, and nothing was stored. Try again later.',
    { shortMessage: 'Another process keeps the database locked.' },
  )
}
