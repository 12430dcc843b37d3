import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { Failure } from '../contract/errors.ts'
import { jsonContentType } from '../contract/formats.ts'
import { contentTypeOptions } from '../contract/headers.ts'
import { limits, type Timeouts } from '../contract/limits.ts'
import { malformed, toFailureAnswer } from './failures.ts'

/** How long a connection with a broken request stays open, so that the client can read why. */
const lingerMs = 500

const lastResponse = Symbol('the response to the last request that came over it')
/** A connection, and what is remembered of it. On itself: a map would be asked three times for each request. */
type TrackedSocket = Socket & { [lastResponse]?: ServerResponse }

/** Answers the requests that Node's parser gives up on, for which there is no request and no reply. */
export function buildClientErrors(newRequestId: () => string, timeouts: Timeouts) {
  const refused = new WeakSet<Socket>()

  /** Remembers which request is the last that came over a connection. Answers the one before it, if it is not over yet. */
  function track(request: IncomingMessage, response: ServerResponse): ServerResponse | undefined {
    const socket: TrackedSocket = request.socket
    const previous = socket[lastResponse]
    socket[lastResponse] = response
    return previous?.writableFinished || previous?.destroyed ? undefined : previous
  }

  /** Whether no other request has come over its connection since. */
  function isLast(response: ServerResponse): boolean {
    const socket: TrackedSocket = response.req.socket
    return socket[lastResponse] === response
  }

  function answer(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === 'ECONNRESET') socket.destroy()
    else refuse(socket, toFailure(error, timeouts))
  }

  /** Refuses what came over a connection after, or in the body of, the last request on it. */
  function refuse(socket: TrackedSocket, failure: Failure): void {
    if (socket.destroyed || refused.has(socket)) return
    refused.add(socket)
    // Node takes its own listener away with a CONNECT; without one, a reset would end the process.
    socket.on('error', () => socket.destroy())
    // However slowly the answers before are read.
    setTimeout(() => socket.destroy(), timeouts.stallTimeoutMs).unref()
    const last = socket[lastResponse]
    const send = () => end(socket, failure)
    if (last === undefined) send()
    else if (last.req.complete) afterwards(last, send)
    // It has an answer already, which may still have to wait for those before it.
    else if (last.headersSent) afterwards(last, () => close(socket))
    else if (last.socket === null) last.once('socket', send)
    else send()
  }

  // The broken bytes come after a whole request: that one gets its answer first.
  function afterwards(last: ServerResponse, send: () => void): void {
    if (last.writableFinished) send()
    else last.once('close', send)
  }

  function end(socket: Socket, failure: Failure): void {
    if (!socket.writable) return
    socket.write(toMessage(failure, newRequestId()))
    close(socket)
  }

  function close(socket: Socket): void {
    socket.end()
    setTimeout(() => socket.destroy(), lingerMs).unref()
  }

  return { track, isLast, answer, refuse }
}

function toFailure({ code = '' }: NodeJS.ErrnoException, timeouts: Timeouts): Failure {
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
  if (code === 'HPE_INVALID_VERSION') {
    return new Failure(50500, 'The request must be HTTP/1.1 or HTTP/1.0.')
  }
  return malformed('The request is not well-formed HTTP.')
}

function toMessage(failure: Failure, requestId: string): string {
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
