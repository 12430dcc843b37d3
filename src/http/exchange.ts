import type { IncomingMessage, ServerResponse } from 'node:http'

/** A request and the answer to it. */
export interface Exchange {
  readonly id: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The path and the query of the request, whatever else its target says. */
  readonly url: string
  /** The fields of the answer's header that are settled so far: names and values in turn, as Node.js writes them. */
  readonly fields: string[]
}

/** Settles a field of the answer. What depends on several things says so in one field. */
export function addField({ fields }: Exchange, name: string, value: string): void {
  const vary = name === 'Vary' ? fields.indexOf(name) : -1
  if (vary === -1) fields.push(name, value)
  else fields[vary + 1] += `, ${value}`
}

export function addFields(exchange: Exchange, headers: Readonly<Record<string, string>>): void {
  for (const name in headers) addField(exchange, name, headers[name] as string)
}

/** Sends an answer whose other fields are settled. Without a text it has no body. */
export function send({ response, fields }: Exchange, status: number, text?: string): void {
  if (text === undefined) {
    response.writeHead(status, fields).end()
    return
  }
  fields.push('Content-Length', String(Buffer.byteLength(text)))
  response.writeHead(status, fields).end(text)
}
