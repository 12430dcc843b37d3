import { everyOperation } from './every-operation.ts'
import { answered, get, post, put, refused, refusedAll, type Scenario, visit } from './scenario.ts'

const retryAfter = { headers: { 'retry-after': /^\d+$/ } }
const busy = { fault: 'queue full', ...retryAfter } as const
const unreachable = { fault: 'unreachable', ...retryAfter } as const
/** The answer does not tell the cause. */
const buggy = { fault: 'bug', body: /^((?!the secret cause).)*$/ } as const
const longName = 'x'.repeat(8_000)

/** Nothing listens on this port. */
const issuerAway = { AUTH_ISSUER: 'http://127.0.0.1:1', AUTH_AUDIENCE: 'https://plants.test' }
const webToken = { Authorization: `Bearer ${btoa('{"alg":"ES256"}').replace(/=+$/, '')}.e30.AA` }

const everywhere: Scenario[] = everyOperation.flatMap(({ name, request }) => [
  refused(42900, `${name} beyond the rate limit`, request, {
    fault: 'rate limit',
    headers: {
      'retry-after': /^\d+$/,
      ratelimit: /^"token";r=0;t=\d+$/,
      'ratelimit-policy': '"token";q=1;w=3600',
    },
  }),
  refused(50000, `${name} with a bug in the store`, request, buggy),
  refused(50301, `${name} with a store that does not answer`, request, unreachable),
  refused(
    50302,
    `${name} with a JSON Web Token whose issuer is away`,
    { ...request, headers: { ...request.headers, ...webToken } },
    { env: issuerAway, ...retryAfter },
  ),
])

const overload: Scenario[] = everyOperation.map(({ name, request, isServedUnderLoad }) => {
  const title = `${name} with a full queue`
  if (isServedUnderLoad) return answered(title, request, { fault: 'queue full' })
  return refused(50300, title, request, busy)
})

const writes: Scenario[] = everyOperation
  .filter(({ isWrite }) => isWrite)
  .flatMap(({ name, request }) => [
    refused(50301, `${name} with a store that cannot be reached`, request, {
      fault: 'not reachable',
      ...retryAfter,
    }),
    refused(50400, `${name} with a store that does not confirm`, request, {
      fault: 'not confirmed',
    }),
    refused(50700, `${name} with a store that has no space`, request, { fault: 'full' }),
  ])

const diskFull: Scenario[] = [
  ...refusedAll(
    50700,
    {
      'a create on a full disk': post(`{"id":7,"name":"${longName}"}`),
      'a replace on a full disk': put('/plants/1', `{"name":"${longName}"}`),
    },
    { fault: 'disk full' },
  ),
  answered('a get on a full disk', get('/plants/1'), { fault: 'disk full' }),
  answered('readiness after a write on a full disk', visit('/readyz'), {
    fault: 'disk full',
    body: '{"status":"ok"}',
  }),
]

const service: Scenario[] = [
  answered('health with a full queue', visit('/healthz'), { fault: 'queue full' }),
  refused(50300, 'an unknown path with a full queue', get('/nothing'), busy),
  ...['/plants', '/plants/1', '/plants.ndjson', '/plants.csv', '/events'].map((path) =>
    refused(50300, `OPTIONS ${path} with a full queue`, { method: 'OPTIONS', path }, busy),
  ),
  refused(50300, 'readiness during a shutdown', visit('/readyz'), {
    fault: 'shutting down',
    ...retryAfter,
  }),
  refused(50301, 'readiness without a store', visit('/readyz'), unreachable),
  refused(50000, 'readiness with a bug in the store', visit('/readyz'), buggy),
]

/** Faults of the store and of the service. */
export const faults: Scenario[] = [...everywhere, ...overload, ...writes, ...diskFull, ...service]
