import type { IncomingMessage, ServerResponse } from 'node:http'
import { jsonContentType } from '../contract/formats.ts'

/** A request and the answer to it. */
export interface Exchange {
  readonly id: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The path and the query of the request, whatever else its target says. */
  readonly url: string
  /** What the answer carries whatever it is: names and values in turn, as Node.js writes them. */
  readonly fields: string[]
}

/** Answers a request with what went wrong. */
export type Fail = (exchange: Exchange, error: unknown) => void

export type Headers = Readonly<Record<string, string>>

/** Settles a field that the answer carries whatever it is. */
export function addField({ fields }: Exchange, name: string, value: string): void {
  fields.push(name, value)
}

/** The fields of one answer: those that are settled, and its own. What depends on several things says so in one field. */
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

/** Sends an answer. Without a text it has no body. */
export function send(
  exchange: Exchange,
  status: number,
  headers: Headers,
  text?: string,
  contentType = jsonContentType,
): void {
  const fields = joinFields(exchange, headers)
  if (text !== undefined) {
    fields.push('Content-Type', contentType, 'Content-Length', String(Buffer.byteLength(text)))
  }
  exchange.response.writeHead(status, fields).end(text)
}
