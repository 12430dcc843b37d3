import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ErrorNumber, Failure, toStatus } from '../contract/errors.ts'
import { jsonContentType } from '../contract/formats.ts'
import { limits } from '../contract/limits.ts'
import type { ErrorBody } from '../contract/shapes.ts'
import type { Counters } from '../metrics/requests.ts'
import { observe } from '../store/measures.ts'
import { discardRest, sendWhole } from './node/bodies.ts'
import { breakOff } from './node/client-socket.ts'

/** A request and its answer. */
export interface Exchange {
  readonly id: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The path and the query of the request target. */
  readonly url: string
  /** The decoded path; undefined if an escape is broken. */
  readonly path: string | undefined
  /** The path as the contract has it; undefined if it does not know it. */
  readonly route: string | undefined
  /** Header fields that its answer gets, even an error: names and values alternate, as for Node. */
  readonly fields: string[]
  /** For the log: the token of the request. */
  tokenId: string | undefined
  /** For the log and the metrics: the error number of the answer. */
  error: number | undefined
  /** When the request began (`performance.now()`). */
  readonly startedAt: number
  /** Where the answer is counted for the metrics. */
  readonly counters: Counters
  /** Lets the caller begin another request. `send` calls it; a streamed body begins after it. */
  readonly leave: () => void
  /** Counts the bytes of the answer that the client has not read yet (`buildUnreadCount`). */
  readonly countUnread: (response: ServerResponse, bytes: number) => void
}

const processId = randomBytes(6).toString('base64url')
let requests = 0

/** Request ids are unique across restarts and processes. */
export function newRequestId(): string {
  return `${processId}-${(++requests).toString(36)}`
}

export type HeaderValues = Readonly<Record<string, string>>

/** What a handler answers. */
export interface Answer {
  readonly status: number
  readonly headers: HeaderValues
  readonly body?: string | Buffer | BodyStream
  /** The type of a text: JSON unless given. */
  readonly contentType?: string
}

/** A body that is sent piece by piece, while its token is valid. */
export type BodyStream = (
  exchange: Exchange,
  headers: HeaderValues,
  verifyToken: () => unknown,
) => Promise<void>

/** What a header value may not have: line breaks above all, which would begin another field. */
const unsafe = /[^\t\x20-\x7e\x80-\xff]/

/** Adds headers to those that every answer gets. `Vary` and `Connection` stay single. */
export function joinFields({ fields }: Pick<Exchange, 'fields'>, headers: HeaderValues): string[] {
  const joined = fields.slice()
  for (const name in headers) {
    const value = headers[name] as string
    if (unsafe.test(value))
      throw new Error(`The header ${name} has a character that is not allowed.`)
    const known = name === 'Vary' || name === 'Connection' ? joined.indexOf(name) : -1
    if (known === -1) joined.push(name, value)
    else if (name === 'Vary') joined[known + 1] += `, ${value}`
  }
  return joined
}

/** Sends an answer as a whole. */
export function send(
  exchange: Exchange,
  status: number,
  headers: HeaderValues,
  body?: string | Buffer,
  contentType = jsonContentType,
): void {
  const { request, response } = exchange
  const fields = joinFields(exchange, headers)
  exchange.leave()
  let bytes = 0
  if (body !== undefined) {
    bytes = Buffer.byteLength(body)
    fields.push('Content-Type', contentType, 'Content-Length', String(bytes))
  }
  // The answer to HEAD says how large the body would be, but has none.
  const bodyBytes = request.method === 'HEAD' ? 0 : bytes
  discardRest(request)
  if (typeof body === 'string') {
    sendWhole(response, status, fields, body, bytes)
    if (request.socket.writableLength > 0) exchange.countUnread(response, bodyBytes)
  } else response.writeHead(status, fields).end(body)
  recordAnswer(exchange, status, bodyBytes)
}

const challenge = 'Bearer realm="plant-store"'
const retryAfter = { 'Retry-After': String(limits.retryAfterSeconds) }

/** The header that says what is wrong with the credentials. */
export function toChallenge(error: string, scope?: string): HeaderValues {
  const needed = scope === undefined ? '' : `, scope="${scope}"`
  return { 'WWW-Authenticate': `${challenge}, error="${error}"${needed}` }
}

const headersByNumber: Partial<Record<ErrorNumber, HeaderValues>> = {
  40100: { 'WWW-Authenticate': challenge },
  40101: toChallenge('invalid_token'),
  40102: toChallenge('invalid_token'),
  50300: retryAfter,
  50301: retryAfter,
}

/** A failure as an HTTP answer. This is the only place where a failure becomes a status. */
export function toFailureAnswer(failure: Failure) {
  const body: ErrorBody = { error: failure.number, message: failure.message }
  return {
    status: toStatus(failure.number),
    headers: { ...headersByNumber[failure.number], ...failure.headers },
    body: JSON.stringify(body),
  }
}

/** Any error that is not a `Failure` is a bug: the log gets its cause, the client does not. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  const message = 'Internal error. The log of the service has the cause under this request id.'
  return new Failure(50000, message, { cause: error })
}

/** Counts an answer for the metrics, once for each exchange: a streamed one when it has ended. */
export function recordAnswer(
  { request, counters, startedAt, error }: Exchange,
  status: number,
  responseBytes: number,
): void {
  const seconds = (performance.now() - startedAt) / 1000
  countAnswer(counters, error ?? status, seconds, responseBytes)
  const requestBytes = Number(request.headers['content-length'] ?? 0)
  if (requestBytes > 0) observe(counters.bytes.request, requestBytes)
}

/** Counts an answer by its status or error number. */
export function countAnswer(
  counters: Counters,
  outcome: number,
  seconds: number,
  responseBytes: number,
): void {
  const known = counters.outcomes.get(outcome)
  if (known === undefined) counters.outcomes.set(outcome, { count: 1 })
  else known.count++
  counters.answered++
  observe(counters.seconds, seconds)
  observe(counters.bytes.response, responseBytes)
}

/**
 * Counts the memory that answers take until their clients have read them. Beyond the bound over all
 * connections, the clients that have not read for the longest time are cut, down to half of it.
 */
export function buildUnreadCount(): Exchange['countUnread'] {
  /** The longest unread first. */
  const unread = new Map<ServerResponse, number>()
  let unreadBytes = 0

  function set(response: ServerResponse, bytes: number): void {
    const before = unread.get(response) ?? 0
    unreadBytes += bytes - before
    // Its client has read something: it moves to the end.
    if (bytes < before) unread.delete(response)
    if (bytes > 0) unread.set(response, bytes)
    if (before === 0 && bytes > 0) response.once('close', forget)
    if (before > 0 && bytes === 0) response.off('close', forget)
  }

  function forget(this: ServerResponse): void {
    set(this, 0)
  }

  return (response, bytes) => {
    set(response, bytes)
    if (unreadBytes <= limits.unreadBytes) return
    for (const longest of unread.keys()) {
      if (unreadBytes <= limits.unreadBytes / 2) return
      set(longest, 0)
      breakOff(longest.req.socket)
    }
  }
}
