/** When each error number is answered. A number is the HTTP status times 100 plus a detail, and is never reused. */
export const errors = {
  40000:
    'The request line, a header, `Host`, the URL or the framing of the body is malformed, or `Authorization` or `Content-Type` is given twice.',
  40001:
    'The body is not JSON: its syntax, its UTF-8, a member given twice, or nesting deeper than 32.',
  40002: 'The body is missing or empty.',
  40003: 'The JSON does not have the expected shape.',
  40004: 'The id in the path is not an int64.',
  40005: 'A query parameter or a header field has a value that is not allowed.',
  40100: 'No credentials were sent.',
  40101: 'The token is unknown, malformed or revoked.',
  40102: 'The token has expired.',
  40300: 'The token lacks the scope of this operation.',
  40400: 'There is nothing at this path.',
  40401: 'No plant has this id.',
  40500: 'The path does not know this method.',
  40800: 'The request was not complete in time.',
  40900: 'A plant with this id exists.',
  41200: 'The precondition does not hold.',
  41300: 'The body is too large.',
  41400: 'The URL is too long.',
  41500: 'The body is not `application/json` in UTF-8, or has a content encoding.',
  41700: 'The `Expect` header asks for something other than `100-continue`.',
  42200: 'This `Idempotency-Key` was used with another body.',
  42900: 'The token has made as many requests as it may, for now.',
  43100: 'The headers are too large.',
  50000: 'A fault of the service; its log has the cause under the request id.',
  50300: 'The service is overloaded or shutting down; nothing was stored.',
  50301: 'The store cannot be reached; nothing was stored.',
  50400:
    'The store did not confirm: the plant may or may not have been stored. Ask for it, or retry with the same id.',
  50500: 'The request is neither HTTP/1.0 nor HTTP/1.1.',
  50700: 'The disk is full; nothing was stored. Reads go on.',
} as const

export type ErrorNumber = keyof typeof errors

/** The catalogue in ascending order. */
export const errorNumbers = Object.keys(errors).map(Number) as ErrorNumber[]

/** The HTTP status of an error number. */
export function toStatus(number: ErrorNumber): number {
  return Math.trunc(number / 100)
}

/** An expected failure, on its way to becoming an answer. The message is for the caller: never put a secret into it. */
export class Failure extends Error {
  readonly number: ErrorNumber
  readonly headers: Readonly<Record<string, string>>

  constructor(
    number: ErrorNumber,
    message: string,
    options: { headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'Failure'
    this.number = number
    this.headers = options.headers ?? {}
  }
}
