/** Keeps browsers from guessing another media type. Every answer carries it. */
export const contentTypeOptions = 'nosniff'

/**
 * Caches ask again before they reuse an answer of an operation or a web page, never keep a health
 * check, and keep a file whose name contains its hash.
 */
export const cachePolicies = {
  operation: 'private, no-cache',
  health: 'no-store',
  page: 'no-cache',
  asset: 'public, max-age=31536000, immutable',
} as const

/** How long a browser may cache the answer to a preflight. */
export const preflightSeconds = 7200

const text = { type: 'string' }
const seconds = { type: 'integer', format: 'int32', minimum: 0, maximum: 86_400 }

/** Every response header except those of HTTP itself, such as `Date` and `Content-Length`. */
export const headers = {
  Location: {
    description:
      'The URL of the plant: relative to the URL of the request, or absolute where the operator ' +
      'has set a public URL.',
    schema: { ...text, format: 'uri-reference' },
    example: '/plants/1',
  },
  ETag: {
    description:
      'The strong entity tag of this state of the plant. Every change gives the plant a ' +
      'new one, and none is ever used again, not even after the plant was deleted and ' +
      'created again.',
    schema: { ...text, pattern: '^"[!#-~]+"$' },
    example: '"1d8f0c5a7b21"',
  },
  Link: {
    description:
      'The URL of the next page, as `<URL>; rel="next"`: of plants while more follow, of events ' +
      'always. Relative to the URL of the request, or absolute where the operator has set a public ' +
      'URL.',
    schema: text,
    example: '</plants?limit=100&after=100>; rel="next"',
  },
  'Idempotency-Replayed': {
    description: '`true` when this is the first response to the `Idempotency-Key`, sent again.',
    schema: { ...text, const: 'true' },
    example: 'true',
  },
  'Content-Disposition': {
    description: 'Tells a browser to save the body as a file, and under which name.',
    schema: text,
    example: 'attachment; filename="plants.csv"',
  },
  'Content-Encoding': {
    description: '`gzip` when the request allows it (`Accept-Encoding`).',
    schema: { ...text, const: 'gzip' },
    example: 'gzip',
  },
  'X-Accel-Buffering': {
    description: '`no` on a stream, so that nginx passes each event on as it comes.',
    schema: { ...text, const: 'no' },
    example: 'no',
  },
  'X-Request-Id': {
    description: 'The id under which the log of the service mentions this request.',
    schema: { ...text, pattern: '^[A-Za-z0-9_-]+$' },
    example: 'k3v9x1Qb-2s',
  },
  'X-Content-Type-Options': {
    description: 'Keeps browsers from guessing another media type.',
    schema: { ...text, const: contentTypeOptions },
    example: contentTypeOptions,
  },
  'Cache-Control': {
    description:
      `\`${cachePolicies.operation}\` on operations: a cache asks again before it reuses the ` +
      `response. \`${cachePolicies.health}\` on health checks.`,
    schema: { ...text, enum: [cachePolicies.operation, cachePolicies.health] },
    example: cachePolicies.operation,
  },
  'Token-Scopes': {
    description: 'The scopes of the token, separated by spaces.',
    schema: text,
    example: 'plants:read plants:write',
  },
  'WWW-Authenticate': {
    description: 'How to authenticate (RFC 6750), and what is wrong with the credentials sent.',
    schema: text,
    example: 'Bearer realm="plant-store", error="invalid_token"',
  },
  RateLimit: {
    description:
      'How many requests the token has left (`r`), and after how many seconds the count starts ' +
      'again (`t`). Only where the operator has set a limit.',
    schema: text,
    example: '"token";r=59;t=42',
  },
  'RateLimit-Policy': {
    description:
      'How many requests a token may make (`q`) in how many seconds (`w`). Only where the ' +
      'operator has set a limit.',
    schema: text,
    example: '"token";q=60;w=60',
  },
  'Retry-After': {
    description: 'The number of seconds to wait before a retry.',
    schema: seconds,
    example: 1,
  },
  Vary: {
    description:
      'The request headers that the response depends on: `Accept-Encoding` for exports, `Accept` ' +
      'where there are several media types, `Origin` where the operator has named the origins that may call.',
    schema: text,
    example: 'Accept-Encoding',
  },
  'Access-Control-Allow-Origin': {
    description:
      'The origin that may read the response, or `*` for any. Only in responses to a request ' +
      'with `Origin`.',
    schema: text,
    example: '*',
  },
  'Access-Control-Expose-Headers': {
    description: 'The response headers that a page of another origin may read.',
    schema: text,
    example: 'Link, Location, ETag',
  },
} as const

export type HeaderName = keyof typeof headers

/** The headers that answers carry: always, or sometimes. */
export type Carried = Readonly<Partial<Record<HeaderName, 'required' | 'optional'>>>

/** The headers of every answer. The optional ones are those of CORS. */
const headersOfAny: Carried = {
  'X-Request-Id': 'required',
  'X-Content-Type-Options': 'required',
  Vary: 'optional',
  'Access-Control-Allow-Origin': 'optional',
  'Access-Control-Expose-Headers': 'optional',
}
export const headersOfHealth: Carried = { ...headersOfAny, 'Cache-Control': 'required' }
export const headersOfOperation: Carried = {
  ...headersOfHealth,
  RateLimit: 'optional',
  'RateLimit-Policy': 'optional',
}
/** For statuses that are also answered before a request reaches its operation. */
const headersOfEither: Carried = { ...headersOfOperation, 'Cache-Control': 'optional' }
const ofToken: Carried = { ...headersOfOperation, 'WWW-Authenticate': 'required' }
const ofRate: Carried = { RateLimit: 'required', 'RateLimit-Policy': 'required' }

export type FailureResponse = readonly [name: string, carried: Carried]

/** The response of each status of a failure: its name in the document, and its headers. */
export const failureResponses: Readonly<Record<number, FailureResponse>> = {
  400: ['BadRequest', { ...headersOfEither, 'WWW-Authenticate': 'optional' }],
  401: ['Unauthorized', ofToken],
  403: ['Forbidden', ofToken],
  404: ['NotFound', headersOfEither],
  405: ['MethodNotAllowed', headersOfAny],
  408: ['RequestTimeout', headersOfEither],
  409: ['Conflict', headersOfOperation],
  410: ['Gone', headersOfOperation],
  412: ['PreconditionFailed', headersOfOperation],
  413: ['ContentTooLarge', headersOfOperation],
  414: ['UriTooLong', headersOfAny],
  415: ['UnsupportedMediaType', headersOfOperation],
  417: ['ExpectationFailed', headersOfAny],
  422: ['UnprocessableContent', headersOfOperation],
  429: ['TooManyRequests', { ...headersOfOperation, ...ofRate, 'Retry-After': 'required' }],
  431: ['HeadersTooLarge', headersOfAny],
  500: ['InternalServerError', headersOfOperation],
  503: ['ServiceUnavailable', { ...headersOfEither, 'Retry-After': 'required' }],
  504: ['GatewayTimeout', headersOfOperation],
  505: ['HttpVersionNotSupported', headersOfAny],
  507: ['InsufficientStorage', headersOfOperation],
}

/** The request headers that a page of another origin may send. */
export const corsRequestHeaders = [
  'Authorization',
  'Content-Encoding',
  'Content-Type',
  'Idempotency-Key',
  'If-Match',
  'If-None-Match',
  'Last-Event-ID',
  'traceparent',
  'X-Request-Id',
].join(', ')

/** The response headers that a page of another origin may read. */
export const corsResponseHeaders = [
  'Link',
  'Location',
  'ETag',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'WWW-Authenticate',
  'Idempotency-Replayed',
  'X-Request-Id',
].join(', ')
