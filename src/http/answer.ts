import { jsonContentType } from '../contract/formats.ts'
import type { Limits } from '../contract/limits.ts'
import type { Plant, StoredPlant } from '../contract/shapes.ts'
import { toJson, toJsonArray } from '../json/write.ts'
import { addField, addFields, type Exchange, send } from './exchange.ts'
import { isPieces, type Pieces, sendPieces } from './pieces.ts'

/** What an operation answers, whichever it is. */
export interface AnyAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Plant | StoredPlant | readonly StoredPlant[] | Pieces | undefined
}

/** Sends what an operation answers. */
export function sendAnswer(
  exchange: Exchange,
  { status, headers, body }: AnyAnswer,
  limits: Limits,
  fail: (error: unknown) => void,
): void {
  if (body !== undefined && isPieces(body)) {
    sendPieces(exchange, { status, headers, body }, limits).catch(fail)
    return
  }
  addFields(exchange, headers)
  if (body !== undefined) addField(exchange, 'Content-Type', jsonContentType)
  send(exchange, status, body && toText(body))
}

function toText(body: Plant | StoredPlant | readonly StoredPlant[]): string {
  return Array.isArray(body) ? toJsonArray(body) : toJson(body as Plant | StoredPlant)
}
