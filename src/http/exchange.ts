import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { Failure } from '../contract/errors.ts'
import { jsonContentType } from '../contract/formats.ts'
import type { Timeouts } from '../contract/limits.ts'
import type { ImportReport, Plant, StoredPlant } from '../contract/shapes.ts'
import { toJson, toJsonArray, toReportJson } from '../json/write.ts'
import type { Counters } from '../metrics/requests.ts'
import { observe } from '../store/measures.ts'
import { takesGzip } from './negotiation.ts'
import { breakOff } from './node/connection.ts'
import { discardRest, sendWhole } from './node/messages.ts'
import { countUnread } from './unread.ts'

/** A request and its answer. */
export interface Exchange {
  readonly id: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The path and the query of the request target. */
  readonly url: string
  /** Header fields of any answer to it: names and values alternate, as Node takes them. */
  readonly fields: string[]
  /** For the log: the token of the request. */
  tokenId: string | undefined
  /** For the log and the metrics: the error number of the answer. */
  error: number | undefined
  /** When the request began (`performance.now()`). */
  readonly startedAt: number
  /** Where the answer is counted for the metrics. */
  readonly counters: Counters
  /** Lets the caller begin another request: called when the answer is made, maybe twice. */
  readonly leave: () => void
}

export type Headers = Readonly<Record<string, string>>

/** Adds a header field to any answer. */
export function addField({ fields }: Exchange, name: string, value: string): void {
  fields.push(name, value)
}

/** What a header value may not have: line breaks above all, which would begin another field. */
const unsafe = /[^\t\x20-\x7e\x80-\xff]/

/** Adds the headers of one answer to the fields of any. `Vary` and `Connection` stay single. */
export function joinFields({ fields }: Exchange, headers: Headers): string[] {
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

/** Sends an answer, with or without a body. */
export function send(
  exchange: Exchange,
  status: number,
  headers: Headers,
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
  discardRest(request)
  if (typeof body === 'string') {
    sendWhole(response, status, fields, body, bytes)
    if (request.socket.writableLength > 0) countUnread(response, bytes)
  } else response.writeHead(status, fields).end(body)
  recordAnswer(exchange, status, bytes)
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
  if (requestBytes > 0) observe(counters.requestBytes, requestBytes)
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
  observe(counters.responseBytes, responseBytes)
}

/** The answer of any operation. */
export interface AnyAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: HeldBody | StreamedBody | EventStream | TextContent | undefined
}

/** A body other than JSON of a shape. Its text is read when it is sent. */
export interface TextContent {
  readonly contentType: string
  readonly text: string
}

/**
 * Sends the answer of an operation. A streamed one is sent piece by piece, while its token is
 * valid: only that returns a promise.
 */
export function sendAnswer(
  exchange: Exchange,
  { status, headers, body }: AnyAnswer,
  timeouts: Timeouts,
  verifyToken: () => unknown,
): Promise<void> | undefined {
  exchange.leave()
  if (body === undefined) send(exchange, status, headers)
  else if ('sendTo' in body) return body.sendTo(exchange, headers, verifyToken)
  else if ('pieces' in body) {
    return sendStreamed(exchange, { status, headers, body }, timeouts, verifyToken)
  } else if ('text' in body) send(exchange, status, headers, body.text, body.contentType)
  else send(exchange, status, headers, toBodyText(body))
  return undefined
}

/** A body that is sent as a whole. */
type HeldBody = Plant | StoredPlant | readonly StoredPlant[] | ImportReport

function toBodyText(body: HeldBody): string {
  if (Array.isArray(body)) return toJsonArray(body)
  if ('refused' in body) return toReportJson(body)
  if ('name' in body) return toJson(body)
  throw new Error('This shape of an answer has no writer: see json/write.ts.')
}

/** A stream of events that has not been sent yet. */
export interface EventStream {
  /** Sends events until the client leaves, or the stream ends. */
  sendTo(exchange: Exchange, headers: Headers, verifyToken: () => unknown): Promise<void>
}

/** A body that is too large for memory: it is sent piece by piece. */
export interface StreamedBody {
  readonly contentType: string
  readonly pieces: AsyncIterable<string>
  /** Releases the source of the pieces, whether they were read or not. */
  close(): Promise<void>
}

/**
 * Sends a body piece by piece: as fast as the client reads, within the time limit, and only while
 * its token is valid.
 */
async function sendStreamed(
  exchange: Exchange,
  { status, headers, body }: AnyAnswer & { readonly body: StreamedBody },
  timeouts: Timeouts,
  verifyToken: () => unknown,
): Promise<void> {
  const { request, response } = exchange
  const writtenBefore = request.socket.bytesWritten
  // The answer to HEAD has no body, so none is written.
  const source = Readable.from(request.method === 'HEAD' ? [] : body.pieces, { objectMode: false })
  const end = (reason: Error) => source.destroy(reason)
  const timer = setTimeout(end, timeouts.exportMs, tooSlow(timeouts))
  // By a timer, not with each piece: a client that does not read takes no more pieces.
  const watch = setInterval(() => Promise.try(verifyToken).catch(end), tokenCheckMs)
  source.once('close', () => {
    clearTimeout(timer)
    clearInterval(watch)
    body.close().catch(() => {})
  })
  try {
    // A failure before the first piece still gets a status of its own.
    await once(source, 'readable')
    if (!response.destroyed) {
      const isGzip = takesGzip(request.headers['accept-encoding'])
      const encoding = isGzip ? { 'Content-Encoding': 'gzip' } : {}
      const own = { ...headers, 'Content-Type': body.contentType, ...encoding }
      response.writeHead(status, joinFields(exchange, own))
      // Comes before the pipeline, which would close the connection as after a whole answer.
      source.once('error', () => breakOff(request.socket))
      await pipeline([source, ...(isGzip ? [createGzip()] : []), response])
    }
  } catch (error) {
    // A client that leaves early is not a failure.
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
  } finally {
    source.destroy()
  }
  recordAnswer(exchange, status, request.socket.bytesWritten - writtenBefore)
}

/** How often the token of a streamed answer is checked. */
const tokenCheckMs = 50

function tooSlow({ exportMs }: Timeouts): Failure {
  return new Failure(40800, `The answer was not read within ${exportMs / 1000} s.`)
}
