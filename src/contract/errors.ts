/**
 * The catalogue of error numbers: when the service answers each of them. A number is the HTTP
 * status times 100 plus a detail. It never gets another meaning.
 */
export const errors = {
  40000:
    'The request line, a header, `Host`, the URL or the framing of the body is malformed, or ' +
    '`Authorization` or `Content-Type` appears more than once.',
  40001:
    'The body is not valid JSON: a syntax error, invalid UTF-8, a duplicate member, or nesting ' +
    'deeper than 32 levels.',
  40002: 'The body is missing or blank.',
  40003: 'The JSON does not have the expected shape.',
  40004: 'The id in the path is not an int64.',
  40005: 'A query parameter or a header has a value that is not allowed.',
  40100: 'The request carries no credentials.',
  40101: 'The token is unknown, malformed or revoked.',
  40102: 'The token has expired.',
  40300: 'The token lacks the scope that this operation requires.',
  40400: 'Nothing exists at this path.',
  40401: 'No plant has this id.',
  40500: 'The path does not support this method.',
  40800: 'The request was not complete in time.',
  40900: 'A plant with this id already exists.',
  41000:
    'The position is no longer kept, or belongs to another store. Start again: request ' +
    '`after=latest`, list all plants, then follow the `Link` of the first response.',
  41200: 'The precondition in `If-Match` or `If-None-Match` does not hold.',
  41300:
    'The body, or a line of an import, is larger than 8 KiB, or the body comes in too many small ' +
    'chunks, or its gzip expands too much.',
  41400: 'The URL is longer than 8 KiB.',
  41500:
    'The body does not have the media type of the operation, in UTF-8, or has a content encoding ' +
    'other than the gzip of an import.',
  41700: 'The `Expect` header asks for something other than `100-continue`.',
  42200: 'This `Idempotency-Key` was already used with a different plant.',
  42900: 'The token has used up its requests for now.',
  43100: 'The headers are larger than 16 KiB, or there are more than 1,000 of them.',
  50000: 'The service failed. Its log holds the cause under the request id.',
  50300: 'The service is overloaded or shutting down; nothing was stored.',
  50301: 'The store cannot be reached; nothing was stored.',
  50302: 'The issuer of the JSON Web Token cannot be asked for its keys.',
  50400:
    'The store did not confirm the write: it may or may not be stored, and a GET may not show it ' +
    'yet. Retry with the same id and `Idempotency-Key`.',
  50500: 'The request is neither HTTP/1.0 nor HTTP/1.1.',
  50700: 'The disk is full; nothing was stored. Reads still work.',
} as const

export type ErrorNumber = keyof typeof errors

/** The catalogue in ascending order. */
export const errorNumbers = Object.keys(errors).map(Number) as ErrorNumber[]

/** The HTTP status of an error number. */
export function toStatus(number: ErrorNumber): number {
  return Math.trunc(number / 100)
}

interface FailureOptions {
  readonly headers?: Record<string, string>
  readonly cause?: unknown
  readonly reason?: RefusalReason | undefined
  readonly shortMessage?: string
}

/** `Error` with a property that browsers other than Chromium do not have. */
const v8 = Error as { stackTraceLimit?: number | undefined }

/** An expected failure. Its message becomes part of the answer: never put a secret there. */
export class Failure extends Error {
  readonly number: ErrorNumber
  readonly headers: Readonly<Record<string, string>>
  /** For the metrics: which bound the refused request exceeded. */
  readonly reason: RefusalReason | undefined
  /** What failed, without the promise that nothing was stored: imports may have stored others. */
  readonly shortMessage: string

  constructor(number: ErrorNumber, message: string, options: FailureOptions = {}) {
    // Capturing a stack costs ten times the rest of a refusal and adds nothing to the number.
    const { stackTraceLimit } = v8
    v8.stackTraceLimit = 0
    super(message, { cause: options.cause })
    v8.stackTraceLimit = stackTraceLimit
    this.name = 'Failure'
    this.number = number
    this.headers = options.headers ?? {}
    this.reason = options.reason
    this.shortMessage = options.shortMessage ?? message
  }
}

/** A queue is full. Refusing at once beats a wait that would end in a refusal. */
export function overloaded(reason: RefusalReason = 'write_queue'): Failure {
  return new Failure(
    50300,
    'The service is overloaded and stored nothing. Try again in a moment.',
    { reason, shortMessage: 'The service is overloaded.' },
  )
}

/** Why a request or a connection is refused before it can harm others. Metrics count them. */
export const refusalReasons = [
  'connections',
  'exports',
  'gate',
  'imports',
  'keys_of_token',
  'log_size',
  'rate_limit',
  'event_streams',
  'read_queue',
  'shutdown',
  'waiting_on_connection',
  'write_queue',
  'other',
] as const

export type RefusalReason = (typeof refusalReasons)[number]
