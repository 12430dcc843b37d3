import { Failure } from '../../contract/errors.ts'
import { limits, type Timeouts } from '../../contract/limits.ts'

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
    return new Failure(40000, 'The connection ended before the request did.')
  }
  return new Failure(40000, 'The request is not well-formed HTTP.')
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
