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
  if (body === undefined) send(exchange, status, headers)
  else if ('sendTo' in body) return body.sendTo(exchange, headers, verifyToken)
  else if (isStreamed(body)) {
    return sendStreamed(exchange, { status, headers, body }, timeouts, verifyToken)
  } else if (exchange.request.method === 'HEAD') sendHead(exchange, status, headers, body)
  else if ('text' in body) send(exchange, status, headers, body.text, body.contentType)
  else send(exchange, status, headers, toBodyText(body))
  return undefined
}

/** Answers HEAD. Only the length of a short plant is told: to make a larger body would be dear. */
function sendHead(
  exchange: Exchange,
  status: number,
  headers: Headers,
  body: HeldBody | TextContent,
): void {
  const isShort = 'name' in body && body.name.length + (body.tag?.length ?? 0) <= maxShortLength
  const contentType = 'text' in body ? body.contentType : undefined
  send(exchange, status, headers, isShort ? toBodyText(body) : null, contentType)
}

const maxShortLength = 1_024

/** A body that is sent as a whole. */
type HeldBody = Plant | StoredPlant | readonly StoredPlant[] | ImportReport

function toBodyText(body: HeldBody): string {
  if (Array.isArray(body)) return toJsonArray(body)
  return 'refused' in body ? toReportJson(body) : toJson(body as Plant | StoredPlant)
}
