import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Failure } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import { malformed, toFailureAnswer } from './failures.ts'

/** How long a connection with a broken request stays open, so that the client can read why. */
const lingerMs = 500

/** Answers the requests that Node's parser gives up on, for which there is no request and no reply. */
export function buildClientErrors(newRequestId: () => string) {
  const lastResponses = new WeakMap<Socket, ServerResponse>()
  const ended = new WeakSet<Socket>()

  /** Remembers which response is under way on a connection. */
  function track(response: ServerResponse): void {
    if (response.socket) lastResponses.set(response.socket, response)
  }

  function answer(error: NodeJS.ErrnoException, socket: Socket): void {
    if (socket.destroyed || ended.has(socket)) return
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    ended.add(socket)
    const response = lastResponses.get(socket)
    const isUnderWay = response !== undefined && !response.writableFinished
    if (!isUnderWay) end(socket, toFailure(error))
    // The broken bytes come after a whole request: that one gets its answer first.
    else if (response.req.complete) response.once('close', () => end(socket, toFailure(error)))
    else if (response.headersSent) socket.destroy()
    else end(socket, toFailure(error))
  }

  function end(socket: Duplex, failure: Failure): void {
    if (!socket.writable) return
    socket.end(toMessage(failure, newRequestId()))
    setTimeout(() => socket.destroy(), lingerMs).unref()
  }

  return { track, answer, end }
}

function toFailure({ code = '' }: NodeJS.ErrnoException): Failure {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    const seconds = [limits.headersTimeoutMs, limits.requestTimeoutMs].map((ms) => ms / 1000)
    return new Failure(
      40800,
      `The headers must be complete within ${seconds[0]} s, the whole request within ${seconds[1]} s.`,
    )
  }
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new Failure(43100, `The headers must have at most ${limits.headerBytes} bytes.`)
  }
  if (code === 'HPE_INVALID_VERSION') {
    return new Failure(50500, 'The request must be HTTP/1.1 or HTTP/1.0.')
  }
  return malformed('The request is not well-formed HTTP.')
}

function toMessage(failure: Failure, requestId: string): string {
  const { status, headers, body } = toFailureAnswer(failure)
  const fields = {
    ...headers,
    'X-Request-Id': requestId,
    Date: new Date().toUTCString(),
    Connection: 'close',
    'Content-Length': Buffer.byteLength(body),
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}
