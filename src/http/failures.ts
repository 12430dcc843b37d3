import { type ErrorNumber, Failure, toStatus } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { ErrorBody } from '../contract/shapes.ts'
import { type Exchange, type Headers, send } from './exchange.ts'

const challenge = 'Bearer realm="plant-store"'

/** A failure as it goes over the wire: the one place where a failure becomes a status. */
export interface FailureAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: string
}

export function toFailureAnswer(failure: Failure): FailureAnswer {
  const body: ErrorBody = { error: failure.number, message: failure.message }
  return {
    status: toStatus(failure.number),
    headers: { ...headersByNumber[failure.number], ...failure.headers },
    body: JSON.stringify(body),
  }
}

const retryAfter = { 'Retry-After': String(limits.retryAfterSeconds) }
const invalidToken = { 'WWW-Authenticate': `${challenge}, error="invalid_token"` }

const headersByNumber: Partial<Record<ErrorNumber, Record<string, string>>> = {
  40100: { 'WWW-Authenticate': challenge },
  40101: invalidToken,
  40102: invalidToken,
  50300: retryAfter,
  50301: retryAfter,
}

/** Sends a failure as the answer. */
export function sendFailure(exchange: Exchange, failure: Failure): void {
  const { status, headers, body } = toFailureAnswer(failure)
  exchange.error = failure.number
  send(exchange, status, headers, body)
}

/** An error that is no `Failure` is a fault of ours, and the caller learns no more than that. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  return new Failure(
    50000,
    'The service made a mistake. Its log has the cause under this request id.',
    {
      cause: error,
    },
  )
}

/** The framing of the request is broken. */
export function malformed(message: string, headers: Record<string, string> = {}): Failure {
  return new Failure(40000, message, { headers })
}

export function shuttingDown(advice = ''): Failure {
  return new Failure(50300, `The service is shutting down.${advice}`, { reason: 'shutdown' })
}

export function bodyEndedEarly(): Failure {
  return malformed('The connection ended before the body did.')
}

export function authorizationTwice(): Failure {
  return malformed('The header Authorization is given twice.', {
    'WWW-Authenticate': `${challenge}, error="invalid_request"`,
  })
}

export function insufficientScope(scope: string): Failure {
  return new Failure(40300, `The token lacks the scope ${scope}.`, {
    headers: { 'WWW-Authenticate': `${challenge}, error="insufficient_scope", scope="${scope}"` },
  })
}
