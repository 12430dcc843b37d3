import type { Limits } from '../contract/limits.ts'
import type { Plant, StoredPlant } from '../contract/shapes.ts'
import { toJson, toJsonArray } from '../json/write.ts'
import { type Exchange, type Headers, send } from './exchange.ts'
import { isPieces, type Pieces, sendPieces } from './pieces.ts'

/** What an operation answers, whichever it is. */
export interface AnyAnswer {
  readonly status: number
  readonly headers: Headers
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
  send(exchange, status, headers, body && toText(body))
}

function toText(body: Plant | StoredPlant | readonly StoredPlant[]): string {
  return Array.isArray(body) ? toJsonArray(body) : toJson(body as Plant | StoredPlant)
}
