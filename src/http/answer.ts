import type { Timeouts } from '../contract/limits.ts'
import type { Plant, StoredPlant } from '../contract/shapes.ts'
import { toJson, toJsonArray } from '../json/write.ts'
import { type Exchange, type Headers, send } from './exchange.ts'
import { isStreamed, type StreamedBody, sendStreamed } from './streamed-body.ts'

/** What an operation answers, whichever it is. */
export interface AnyAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: Plant | StoredPlant | readonly StoredPlant[] | StreamedBody | undefined
}

/** Sends what an operation answers. */
export function sendAnswer(
  exchange: Exchange,
  { status, headers, body }: AnyAnswer,
  timeouts: Timeouts,
  fail: (error: unknown) => void,
): void {
  if (body !== undefined && isStreamed(body)) {
    sendStreamed(exchange, { status, headers, body }, timeouts).catch(fail)
    return
  }
  send(exchange, status, headers, body && toText(body))
}

function toText(body: Plant | StoredPlant | readonly StoredPlant[]): string {
  return Array.isArray(body) ? toJsonArray(body) : toJson(body as Plant | StoredPlant)
}
