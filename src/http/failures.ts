import { type ErrorNumber, Failure, toStatus } from '../contract/errors.ts'
import { jsonContentType } from '../contract/formats.ts'
import { contentTypeOptions } from '../contract/headers.ts'
import { limits, type Timeouts } from '../contract/limits.ts'
import type { ErrorBody } from '../contract/shapes.ts'
import { type Exchange, send } from './exchange.ts'
import { STATUS_CODES } from './node/node-http.ts'
import type { ClientError } from './node/server.ts'

const challenge = 'Bearer realm="plant-store"'

/** A failure as an HTTP answer. This is the only place where a failure becomes a status. */
function toFailureAnswer(failure: Failure) {
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

/** A failure as raw HTTP, for a connection that has no request to answer. */
export function toRawAnswer(failure: Failure, requestId: string): string {
  const { status, headers, body } = toFailureAnswer(failure)
  const fields = {
    ...headers,
    'Content-Type': jsonContentType,
    'X-Request-Id': requestId,
    'X-Content-Type-Options': contentTypeOptions,
    Date: new Date().toUTCString(),
    Connection: 'close',
    'Content-Length': Buffer.byteLength(body),
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}

/** Any error that is not a `Failure` is a bug: the log gets its cause, the client does not. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  const message = 'Internal error. The log of the service has the cause under this request id.'
  return new Failure(50000, message, { cause: error })
}

/** The framing of the request is broken. */
export function malformed(message: string, headers: Record<string, string> = {}): Failure {
  return new Failure(40000, message, { headers })
}

export function shuttingDown(advice = ''): Failure {
  return new Failure(50300, `The service is shutting down.${advice}`, { reason: 'shutdown' })
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

/** Node parses nothing after an error. */
const lastAnswer = { headers: { Connection: 'close' } }

/** The failure with which an error of Node's parser is answered. */
export function toClientFailure(error: ClientError, timeouts: Timeouts): Failure {
  const { code = '' } = error
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    const seconds = [timeouts.headersTimeoutMs, timeouts.requestTimeoutMs].map((ms) => ms / 1000)
    return new Failure(
      40800,
      `The headers must be complete within ${seconds[0]} s, the whole request within ${seconds[1]} s.`,
      lastAnswer,
    )
  }
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new Failure(
      43100,
      `The headers must have at most ${limits.headerBytes} bytes and ${limits.headerFields} fields.`,
      lastAnswer,
    )
  }
  if (code === 'HPE_INVALID_VERSION' && !hasKnownVersion(error.rawPacket)) {
    return new Failure(50500, 'The request must be HTTP/1.1 or HTTP/1.0.', lastAnswer)
  }
  if (code === 'HPE_INVALID_EOF_STATE') {
    return new Failure(40000, 'The connection ended before the request did.', lastAnswer)
  }
  return new Failure(40000, 'The request is not well-formed HTTP.', lastAnswer)
}

/** Node also complains about a valid version when no line break follows it. */
function hasKnownVersion(packet: Buffer | undefined): boolean {
  return / HTTP\/1\.[01][^\d\r]/.test(packet?.toString('latin1') ?? '')
}
