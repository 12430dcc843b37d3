interface Header {
  readonly description: string
  readonly example: string | number
  readonly type: 'string' | 'integer'
  /** Whether an answer that may carry it does so only at times. */
  readonly isOptional?: true
}

/** The response headers that carry meaning of ours. */
export const headers = {
  Location: {
    description: 'The address of the plant.',
    example: 'http://127.0.0.1:3000/plants/1',
    type: 'string',
  },
  ETag: {
    description:
      'A strong entity tag. It changes with every change of the plant and never comes back, not even after delete and create.',
    example: '"1d8f0c5a7b21"',
    type: 'string',
  },
  Link: {
    description: 'The address of the next page, as `<…>; rel="next"`, while more plants follow.',
    example: '<http://127.0.0.1:3000/plants?limit=100&after=100>; rel="next"',
    type: 'string',
    isOptional: true,
  },
  'Idempotency-Replayed': {
    description: '`true` when this is the first answer to its `Idempotency-Key` once more.',
    example: 'true',
    type: 'string',
    isOptional: true,
  },
  Vary: {
    description: 'Which headers of the request decided about the form of the answer.',
    example: 'Accept, Accept-Encoding',
    type: 'string',
  },
  'Content-Encoding': {
    description: '`gzip` where the request takes it (`Accept-Encoding`) and the form is not JSON.',
    example: 'gzip',
    type: 'string',
    isOptional: true,
  },
  Allow: {
    description: 'The methods that the path knows.',
    example: 'GET, HEAD, OPTIONS, POST',
    type: 'string',
  },
  'X-Request-Id': {
    description: 'The id under which the log of the service speaks of this request.',
    example: 'k3v9x1-2s',
    type: 'string',
  },
  'WWW-Authenticate': {
    description: 'How to authenticate (RFC 6750), and what was wrong with the token that was sent.',
    example: 'Bearer realm="plant-store", error="invalid_token"',
    type: 'string',
    isOptional: true,
  },
  RateLimit: {
    description:
      'How many requests the token has left (`r`), and for how many seconds that counts (`t`). Only where the operator has set a limit.',
    example: '"token";r=59;t=42',
    type: 'string',
    isOptional: true,
  },
  'RateLimit-Policy': {
    description:
      'How many requests a token may make (`q`) in how many seconds (`w`). Only where the operator has set a limit.',
    example: '"token";q=60;w=60',
    type: 'string',
    isOptional: true,
  },
  'Retry-After': {
    description: 'After how many seconds a retry makes sense.',
    example: 1,
    type: 'integer',
  },
} as const satisfies Record<string, Header>

export type HeaderName = keyof typeof headers

/** What a page of another origin may send. */
export const corsRequestHeaders = [
  'Authorization',
  'Content-Type',
  'Idempotency-Key',
  'If-Match',
  'If-None-Match',
  'traceparent',
  'X-Request-Id',
].join(', ')

/** What a page of another origin may read. */
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
