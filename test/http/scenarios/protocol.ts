import { methodsByPath } from '../../../src/http/router.ts'
import { authorized } from '../../support/service.ts'
import {
  answered,
  get,
  post,
  postChunks,
  refused,
  refusedAll,
  type Scenario,
  upload,
  visit,
} from './scenario.ts'

const impatient = { timeouts: { headersTimeoutMs: 200, requestTimeoutMs: 400 } }

const heads: Scenario[] = [
  answered('HTTP/1.0 without a Host', 'GET /healthz HTTP/1.0\r\n\r\n'),
  refused(40000, 'a request line that is none', 'HELLO\r\n\r\n', {
    headers: { 'x-content-type-options': 'nosniff' },
  }),
  ...refusedAll(40000, {
    'an unknown method': 'PLANT / HTTP/1.1\r\nHost: a\r\n\r\n',
    'a URL with a fragment': get('/plants/1#x'),
    'a URL with bytes beyond ASCII': get('/plants/\u00e9'),
    'a URL without a slash': 'GET plants HTTP/1.1\r\nHost: a\r\n\r\n',
    'a URL in absolute form with two Hosts': visit('http://a/healthz', { Host: ['b', 'c'] }),
    'a URL in absolute form without a Host': 'GET http://a/healthz HTTP/1.1\r\n\r\n',
    'a URL in absolute form with a wrong host': visit('http://a b/healthz'),
    'a space after the version': 'GET / HTTP/1.1 \r\nHost: a\r\n\r\n',
    'a Host with a path': visit('/healthz', { Host: 'a/b' }),
    'an empty Host': visit('/healthz', { Host: '' }),
  }),
  refused(40000, 'a URL with a broken escape', get('/plants/%zz'), { body: /percent sign/ }),
  refused(40000, 'a URL that is not UTF-8', get('/plants/%ff'), { body: /not UTF-8/ }),
  refused(
    41400,
    'a URL in absolute form that is too long',
    visit(`http://${'a'.repeat(9000)}/healthz`),
  ),
  ...refusedAll(50500, {
    'HTTP/3.0': 'GET / HTTP/3.0\r\nHost: a\r\n\r\n',
    'a broken escape over HTTP/2.0': 'GET /plants/%zz HTTP/2.0\r\nHost: a\r\n\r\n',
  }),
  refused(
    40000,
    'two Authorizations',
    get('/plants/1', { Authorization: [authorized.Authorization, authorized.Authorization] }),
    {
      headers: { 'www-authenticate': 'Bearer realm="plant-store", error="invalid_request"' },
    },
  ),
]

/** Broken framing is in smuggling.test.ts. */
const framing: Scenario[] = [
  refused(40800, 'a body that never ends', post('{"id":', { 'Content-Length': '100' }), impatient),
  refused(40800, 'a last chunk that never comes', postChunks('2\r\n{}\r\n'), impatient),
  refused(
    40800,
    'an import whose sender falls silent',
    upload('ndjson', '{"id":1,"name":"a"}\n{"id":', { 'Content-Length': '100' }),
    { ...impatient, body: /sent nothing for 0\.4 s\. Imported .*1 stored/ },
  ),
  refused(
    40800,
    'an import that takes too long',
    upload('ndjson', '', { 'Content-Length': '100' }),
    {
      timeouts: { importMs: 200 },
      body: /The import must end within 0\.2 s\. Nothing was imported\./,
    },
  ),
]

const kept = { headers: { 'keep-alive': 'timeout=72', connection: 'keep-alive' } }
const closed = { headers: { 'keep-alive': '', connection: 'close' } }
const { Authorization } = authorized
const asked = `Connection: keep-alive\r\nAuthorization: ${Authorization}\r\n\r\n`

/** An idle connection is announced with the time that it is kept, unless the answer closes it. */
const idle: Scenario[] = [
  answered('a request whose connection is kept', visit('/healthz'), kept),
  answered('HTTP/1.0 that asks to be kept', `GET /plants HTTP/1.0\r\n${asked}`, kept),
  answered('the last request', visit('/healthz', { Connection: 'close' }), closed),
  answered('HTTP/1.0 that is not kept', 'GET /healthz HTTP/1.0\r\nHost: a\r\n\r\n', closed),
  answered('an export over HTTP/1.0', `GET /plants.csv HTTP/1.0\r\n${asked}`, closed),
  refused(
    40100,
    'a body that is expected and not asked for',
    { method: 'POST', ...visit('/plants', { Expect: '100-continue', 'Content-Length': '2' }) },
    closed,
  ),
]

/** Every method of every path meets the faults of the protocol. HEAD does where GET does. */
const lines = [...methodsByPath].flatMap(([path, methods]) =>
  methods
    .filter((method) => method !== 'HEAD')
    .map((method) => `${method} ${path.replace(/\{\w+\}/, '1')}`),
)

const everywhere = lines.flatMap((line): Scenario[] => [
  refused(
    40800,
    `${line} with headers that never end`,
    `${line} HTTP/1.1\r\nHost: a\r\n`,
    impatient,
  ),
  refused(40000, `${line} without a Host`, `${line} HTTP/1.1\r\n\r\n`),
  refused(50500, `${line} over HTTP/2.0`, `${line} HTTP/2.0\r\nHost: a\r\n\r\n`),
  ...(
    [
      [41400, 'a URL that is too long', `?${'x'.repeat(8192)}`, ''],
      [41700, 'an unknown expectation', '', 'Expect: 200-ok\r\n'],
      [43100, 'headers that are too large', '', `X: ${'x'.repeat(16_384)}\r\n`],
    ] as const
  ).map(([error, what, query, header]) =>
    refused(error, `${line} with ${what}`, `${line}${query} HTTP/1.1\r\nHost: a\r\n${header}\r\n`),
  ),
])

/** Faults of HTTP itself. */
export const protocol: Scenario[] = [...heads, ...framing, ...idle, ...everywhere]
