import type { ImportReport } from '../contract/import-report.ts'
import type { Timeouts } from '../contract/limits.ts'
import type { Plant, StoredPlant } from '../contract/shapes.ts'
import { toJson, toJsonArray, toReportJson } from '../json/write.ts'
import type { EventStream } from './event-streams.ts'
import { type Exchange, type Headers, send } from './exchange.ts'
import { isStreamed, type StreamedBody, sendStreamed } from './streamed-body.ts'

/** The answer of any operation. */
export interface AnyAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: HeldBody | StreamedBody | EventStream | TextContent | undefined
}

/** A body that is no JSON of a shape. Its text is made when it is sent. */
export interface TextContent {
  readonly contentType: string
  readonly text: string
}

/**
 * Sends the answer of an operation: at once, or piece by piece, while its token is valid. Returns
 * a promise only for the latter.
 */
export function sendAnswer(
  exchange: Exchange,
  { status, headers, body }: AnyAnswer,
  timeouts: Timeouts,
  verifyToken: () => unknown,
): Promise<void> | undefined {
  if (body !== undefined && 'sendTo' in body) return body.sendTo(exchange, headers, verifyToken)
  if (body !== undefined && isStreamed(body)) {
    return sendStreamed(exchange, { status, headers, body }, timeouts, verifyToken)
  }
  const isHead = exchange.request.method === 'HEAD'
  if (body !== undefined && 'text' in body) {
    send(exchange, status, headers, isHead ? null : body.text, body.contentType)
  } else if (isHead && body !== undefined && !isSmall(body)) send(exchange, status, headers, null)
  else send(exchange, status, headers, body && toText(body))
  return undefined
}

/** A body that is sent as a whole. */
type HeldBody = Plant | StoredPlant | readonly StoredPlant[] | ImportReport

/** Whether the length of a body is told to HEAD: to make a larger one would be dear. */
function isSmall(body: HeldBody): boolean {
  return 'name' in body && body.name.length + (body.tag?.length ?? 0) <= 1_024
}

function toText(body: HeldBody): string {
  if (Array.isArray(body)) return toJsonArray(body)
  return 'refused' in body ? toReportJson(body) : toJson(body as Plant | StoredPlant)
}
