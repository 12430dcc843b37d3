import type { FastifyReply } from 'fastify'
import { jsonContentType } from '../contract/formats.ts'
import type { Limits } from '../contract/limits.ts'
import type { Plant, StoredPlant } from '../contract/shapes.ts'
import { toJson, toJsonArray } from '../json/write.ts'
import { isPieces, type Pieces, sendPieces } from './pieces.ts'

/** What an operation answers, whichever it is. */
export interface AnyAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Plant | StoredPlant | readonly StoredPlant[] | Pieces | undefined
}

/** Sends what an operation answers. */
export function sendAnswer(reply: FastifyReply, answer: AnyAnswer, limits: Limits): void {
  const { status, body } = answer
  const headers = joinVary(reply, answer.headers)
  if (isPieces(body)) sendPieces(reply.code(status).headers(headers), body, limits)
  else write(reply, status, headers, body)
}

/** What the origin decides about is said before an operation is asked; both go into one field. */
function joinVary(reply: FastifyReply, headers: AnyAnswer['headers']): AnyAnswer['headers'] {
  const vary = headers.Vary && reply.getHeader('Vary')
  if (!vary) return headers
  reply.removeHeader('Vary')
  return { ...headers, Vary: `${vary}, ${headers.Vary}` }
}

/** Writes an answer past Fastify, which would look for what it is: that takes a tenth of a request. */
function write(
  reply: FastifyReply,
  status: number,
  headers: AnyAnswer['headers'],
  body: Plant | StoredPlant | readonly StoredPlant[] | undefined,
): void {
  const { raw } = reply
  const fields: string[] = []
  const settled = reply.getHeaders() as Record<string, string>
  for (const name in settled) fields.push(name, settled[name] as string)
  for (const name in headers) fields.push(name, headers[name] as string)
  if (body === undefined) {
    raw.writeHead(status, fields).end()
    return
  }
  const text = Array.isArray(body) ? toJsonArray(body) : toJson(body as Plant | StoredPlant)
  fields.push('Content-Type', jsonContentType, 'Content-Length', String(Buffer.byteLength(text)))
  raw.writeHead(status, fields).end(text)
}
