import type { IncomingMessage, ServerResponse } from 'node:http'
import { jsonContentType } from '../contract/formats.ts'
import { type Counters, countAnswer } from '../metrics/requests.ts'
import { discardUnread } from './node/incoming-body.ts'
import { endWith } from './node/unsent.ts'

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
}

export type Headers = Readonly<Record<string, string>>

/** Adds a header field to any answer. */
export function addField({ fields }: Exchange, name: string, value: string): void {
  fields.push(name, value)
}

/** Adds the headers of one answer to the fields of any. `Vary` becomes a single field. */
export function joinFields({ fields }: Exchange, headers: Headers): string[] {
  const joined = fields.slice()
  for (const name in headers) {
    const value = headers[name] as string
    const vary = name === 'Vary' ? joined.indexOf(name) : -1
    if (vary === -1) joined.push(name, value)
    else joined[vary + 1] += `, ${value}`
  }
  return joined
}

/**
 * Sends an answer, with or without a body. The answer to HEAD may have a media type alone: `null`
 * is a body that was not made.
 */
export function send(
  exchange: Exchange,
  status: number,
  headers: Headers,
  body?: string | Buffer | null,
  contentType = jsonContentType,
): void {
  const { request, response } = exchange
  const fields = joinFields(exchange, headers)
  let bytes = 0
  if (body !== undefined) fields.push('Content-Type', contentType)
  if (body) {
    bytes = Buffer.byteLength(body)
    fields.push('Content-Length', String(bytes))
  }
  discardUnread(request)
  response.writeHead(status, fields)
  if (typeof body === 'string') endWith(response, body, bytes)
  else response.end(body)
  recordAnswer(exchange, status, bytes)
}

/** Counts an answer for the metrics, once for each exchange: a streamed one when it has ended. */
export function recordAnswer(
  { request, counters, startedAt, error }: Exchange,
  status: number,
  responseBytes: number,
): void {
  countAnswer(counters, {
    outcome: error ?? status,
    seconds: (performance.now() - startedAt) / 1000,
    requestBytes: Number(request.headers['content-length'] ?? 0),
    responseBytes,
  })
}
