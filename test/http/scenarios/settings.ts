import {
  answered,
  fern,
  get,
  post,
  readerToken,
  refused,
  type Scenario,
  visit,
} from './scenario.ts'

const Origin = 'https://garden.example'
const preflight = { Origin, 'Access-Control-Request-Method': 'POST' }

/** The request headers that a page may send, and the response headers that it may read. */
const allowed =
  'Authorization, Content-Encoding, Content-Type, Idempotency-Key, If-Match, If-None-Match, ' +
  'Last-Event-ID, traceparent, X-Request-Id'
const exposed =
  'Link, Location, ETag, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, ' +
  'Idempotency-Replayed, X-Request-Id'
const named = { CORS_ORIGIN: `https://other.example, ${Origin}` }

/** Answers to a page of another origin, where any may call and where the operator names some. */
const crossOrigin = [
  { whose: 'any origin', headers: { 'access-control-allow-origin': '*' } },
  {
    whose: 'a named origin',
    env: named,
    headers: { 'access-control-allow-origin': Origin, vary: /^Origin/ },
  },
].flatMap(({ whose, ...service }): Scenario[] => [
  answered(`/docs from ${whose}`, visit('/docs', { Origin }), service),
  answered(`a list from ${whose}`, get('/plants?limit=1', { Origin }), {
    ...service,
    headers: { ...service.headers, 'access-control-expose-headers': exposed },
  }),
  refused(40401, `an absent plant from ${whose}`, get('/plants/404', { Origin }), service),
  refused(40400, `an unknown path from ${whose}`, visit('/nothing', { Origin }), service),
  refused(40000, `a broken escape from ${whose}`, visit('/plants/%zz', { Origin }), service),
  refused(
    40500,
    `another method from ${whose}`,
    { method: 'PATCH', path: '/plants/1', headers: { Origin } },
    service,
  ),
  answered(
    `a preflight of an unknown path from ${whose}`,
    { method: 'OPTIONS', path: '/nothing', headers: preflight },
    { ...service, status: 204 },
  ),
  answered(
    `a preflight from ${whose}`,
    { method: 'OPTIONS', path: '/plants', headers: preflight },
    {
      ...service,
      status: 204,
      headers: {
        ...service.headers,
        'access-control-allow-methods': 'GET, HEAD, OPTIONS, POST',
        'access-control-allow-headers': allowed,
        'access-control-max-age': '7200',
      },
    },
  ),
])

const byOrigin: Scenario[] = [
  refused(
    40401,
    'an origin that the operator does not name',
    get('/plants/1', { Origin: 'null' }),
    {
      env: named,
      headers: { 'access-control-allow-origin': '', vary: 'Origin' },
    },
  ),
  // In one field: a field that is there twice would have one of the two names.
  answered('an export that varies by its origin and its encoding', get('/plants.csv', { Origin }), {
    env: named,
    headers: { vary: 'Origin, Accept-Encoding' },
  }),
  answered('a get by a client without an origin', get('/plants/1'), {
    headers: { 'access-control-allow-origin': '', 'access-control-expose-headers': '' },
  }),
]

const env = { RATE_LIMIT: '1000/h' }
const counted = {
  env,
  headers: { ratelimit: /^"token";r=\d+;t=\d+$/, 'ratelimit-policy': '"token";q=1000;w=3600' },
}
const notCounted = { env, headers: { ratelimit: '', 'ratelimit-policy': '' } }

/** Where the operator has set a limit, every answer to a valid token says what is left. */
const limited: Scenario[] = [
  answered('a create within the rate limit', post(fern), counted),
  answered('a list where no rate limit is set', get('/plants'), {
    headers: notCounted.headers,
  }),
  refused(40401, 'an absent plant within the rate limit', get('/plants/404'), counted),
  refused(40100, 'a request without a token, which is not counted', visit('/plants'), notCounted),
  refused(
    40300,
    'a token of another scope, which is counted',
    post(fern, { Authorization: `Bearer ${readerToken}` }),
    counted,
  ),
]

/** URLs are relative, whatever host a request names, unless the operator has set one. */
const addresses: Scenario[] = [
  ...[
    ['https://plants.example/', 'https://plants.example'],
    ['https://plants.example:8443/api/v1/', 'https://plants.example:8443/api/v1'],
  ].flatMap(([PUBLIC_URL = '', base]) => {
    const env = { PUBLIC_URL }
    return [
      answered(`a create under ${PUBLIC_URL}`, post(fern), {
        env,
        headers: { location: `${base}/plants/7` },
      }),
      answered(`the document under ${PUBLIC_URL}`, visit('/openapi.json'), {
        env,
        body: new RegExp(`"servers":\\[{"url":"${base}"`),
      }),
    ]
  }),
  answered('a list on another host', get('/plants?limit=1', { Host: '[::1]:8080' }), {
    headers: { link: /^<\/plants\?/ },
  }),
  answered('the document by another host', visit('/openapi.json', { Host: 'plants.example' }), {
    body: /"servers":\[{"url":"\/"/,
  }),
]

/** Services that the operator has set up differently. */
export const settings: Scenario[] = [...crossOrigin, ...byOrigin, ...limited, ...addresses]
