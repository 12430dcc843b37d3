import { Failure } from '../contract/errors.ts'
import type { RefusalReason } from '../contract/refusals.ts'

/** The failures of a store, as its callers see them. Engines map their own codes to these. */

/** Nothing was stored: the store did not answer, or answered that it cannot serve now. */
export function unreachable(cause?: unknown): Failure {
  return new Failure(
    50301,
    'The store cannot be reached and nothing was stored. Try again later.',
    { cause, fault: 'The store cannot be reached.' },
  )
}

/** The write was sent, and the store never said what became of it. */
export function unconfirmed(cause?: unknown): Failure {
  return new Failure(
    50400,
    'The store did not confirm the write, so the plant may or may not be stored. Ask for it by its id, or retry with the same id.',
    { cause, fault: 'The store did not confirm the write.' },
  )
}

export function diskFull(cause?: unknown): Failure {
  return new Failure(50700, 'The disk is full and nothing was stored. Plants can still be read.', {
    cause,
    fault: 'The disk is full.',
  })
}

export function diskFailed(cause?: unknown): Failure {
  return new Failure(50301, 'The disk reports an error and nothing was stored. Try again later.', {
    cause,
    fault: 'The disk reports an error.',
  })
}

/** Another process held the lock for too long. */
export function locked(): Failure {
  return new Failure(
    50301,
    'Another process keeps the database locked, and nothing was stored. Try again later.',
    { fault: 'Another process keeps the database locked.' },
  )
}

/** The queue is full. The refusal comes at once, instead of a wait that would end in one. */
export function overloaded(reason: RefusalReason = 'write_queue'): Failure {
  return new Failure(
    50300,
    'The service is overloaded and stored nothing. Try again in a moment.',
    { reason, fault: 'The service is overloaded.' },
  )
}

export function tooManySnapshots(max: number): Failure {
  return new Failure(
    50300,
    `The service is sending ${max} exports already. Try again when one has ended.`,
    { reason: 'exports' },
  )
}

export function tooManySnapshotsOfToken(max: number): Failure {
  return new Failure(
    50300,
    `This token is reading ${max} exports already. Try again when one has ended.`,
    { reason: 'exports' },
  )
}

/** Exports that overlap keep the log of SQLite from starting again. */
export function logTooLarge(): Failure {
  return new Failure(
    50300,
    'The log of the store has grown too large while exports run. Try again when they have ended.',
    { reason: 'log_size' },
  )
}
