import { Failure } from '../../contract/errors.ts'
import { jsonContentType } from '../../contract/formats.ts'
import { contentTypeOptions } from '../../contract/headers.ts'
import { limits, type Timeouts } from '../../contract/limits.ts'
import { malformed, toFailureAnswer } from '../failures.ts'
import { STATUS_CODES } from './node-http.ts'

/** An error of Node's HTTP parser. */
export interface ClientError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer
}

/** The failure that an error of Node's parser means to a client. */
export function toClientFailure(error: ClientError, timeouts: Timeouts): Failure {
  const { code = '' } = error
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    const seconds = [timeouts.headersTimeoutMs, timeouts.requestTimeoutMs].map((ms) => ms / 1000)
    return new Failure(
      40800,
      `The headers must be complete within ${seconds[0]} s, the whole request within ${seconds[1]} s.`,
    )
  }
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new Failure(43100, `The headers must have at most ${limits.headerBytes} bytes.`)
  }
  if (code === 'HPE_INVALID_VERSION' && !hasKnownVersion(error.rawPacket)) {
    return new Failure(50500, 'The request must be HTTP/1.1 or HTTP/1.0.')
  }
  if (code === 'HPE_INVALID_EOF_STATE') {
    return malformed('The connection ended before the request did.')
  }
  return malformed('The request is not well-formed HTTP.')
}

/** Node also complains about a good version when no line break follows it. */
function hasKnownVersion(packet: Buffer | undefined): boolean {
  return / HTTP\/1\.[01][^\d\r]/.test(packet?.toString('latin1') ?? '')
}

/** The failure of the first pipelined request that finds too many before it. */
export function tooManyWaiting(): Failure {
  return new Failure(
    50300,
    'Too many requests wait on this connection. This one and those after it were not done: send them again.',
    { reason: 'waiting_on_connection' },
  )
}

/** A failure as the bytes of an answer, for a connection without a request to answer. */
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
