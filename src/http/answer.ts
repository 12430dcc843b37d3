import type { FastifyReply } from 'fastify'
import { jsonContentType } from '../contract/formats.ts'
import type { Limits } from '../contract/limits.ts'
import type { Plant, StoredPlant } from '../contract/shapes.ts'
import { toJson, toJsonArray } from '../json/write.ts'
import { addField } from './fields.ts'
import { isPieces, type Pieces, sendPieces } from './pieces.ts'

/** What an operation answers, whichever it is. */
export interface AnyAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Plant | StoredPlant | readonly StoredPlant[] | Pieces | undefined
}

/** Sends what an operation answers. */
export function sendAnswer(reply: FastifyReply, answer: AnyAnswer, limits: Limits): void {
  const { status, headers, body } = answer
  for (const name in headers) addField(reply.fields, name, headers[name] as string)
  if (isPieces(body)) sendPieces(reply.code(status), body, limits)
  else write(reply, status, body)
}

/** Writes an answer past Fastify, which would look for what it is: that takes a tenth of a request. */
function write(
  { raw, fields }: FastifyReply,
  status: number,
  body: Plant | StoredPlant | readonly StoredPlant[] | undefined,
): void {
  if (body === undefined) {
    raw.writeHead(status, fields).end()
    return
  }
  const text = Array.isArray(body) ? toJsonArray(body) : toJson(body as Plant | StoredPlant)
  fields.push('Content-Type', jsonContentType, 'Content-Length', String(Buffer.byteLength(text)))
  raw.writeHead(status, fields).end(text)
}
