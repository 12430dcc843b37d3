import { methodsByPath } from '../../../src/http/router.ts'
import { authorized } from '../../support/service.ts'
import {
  answered,
  fern,
  get,
  post,
  postChunks,
  refused,
  type Scenario,
  upload,
  visit,
} from './scenario.ts'

const impatient = { timeouts: { headersTimeoutMs: 200, requestTimeoutMs: 400 } }
const chunks = '16\r\n{"id":7,"name":"Fern"}\r\n0\r\n\r\n'

const urls: Scenario[] = [
  answered('HTTP/1.0 without a Host', 'GET /healthz HTTP/1.0\r\n\r\n'),
  refused(40000, 'a request line that is none', 'HELLO\r\n\r\n', {
    headers: { 'x-content-type-options': 'nosniff' },
  }),
  refused(40000, 'an unknown method', 'PLANT / HTTP/1.1\r\nHost: a\r\n\r\n'),
  refused(40000, 'a request to a proxy', 'CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n'),
  refused(40000, 'a URL with a broken escape', get('/plants/%zz'), { body: /percent sign/ }),
  refused(40000, 'a URL that is not UTF-8', get('/plants/%ff'), { body: /not UTF-8/ }),
  refused(40000, 'a URL with a fragment', get('/plants/1#x')),
  refused(40000, 'a URL with bytes beyond ASCII', get('/plants/\u00e9')),
  refused(40000, 'a URL without a slash', 'GET plants HTTP/1.1\r\nHost: a\r\n\r\n'),
  refused(
    40000,
    'a URL in absolute form with two Hosts',
    visit('http://a/healthz', { Host: ['b', 'c'] }),
  ),
  refused(40000, 'a URL in absolute form without a Host', 'GET http://a/healthz HTTP/1.1\r\n\r\n'),
  refused(40000, 'a URL in absolute form with a wrong host', visit('http://a b/healthz')),
  refused(
    41400,
    'a URL in absolute form that is too long',
    visit(`http://${'a'.repeat(9000)}/healthz`),
  ),
  refused(50500, 'HTTP/3.0', 'GET / HTTP/3.0\r\nHost: a\r\n\r\n'),
  refused(40000, 'a space after the version', 'GET / HTTP/1.1 \r\nHost: a\r\n\r\n'),
  refused(50500, 'HTTP/0.9', 'GET /plants/1\r\n\r\n'),
  refused(50500, 'a broken escape over HTTP/2.0', 'GET /plants/%zz HTTP/2.0\r\nHost: a\r\n\r\n'),
]

const headers: Scenario[] = [
  refused(40000, 'a header that is none', 'GET / HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n'),
  refused(40000, 'two Hosts', visit('/healthz', { Host: ['a', 'b'] })),
  refused(40000, 'a Host with a path', visit('/healthz', { Host: 'a/b' })),
  refused(40000, 'an empty Host', visit('/healthz', { Host: '' })),
  refused(
    40000,
    'two media types',
    post(fern, { 'Content-Type': ['application/json', 'application/json'] }),
  ),
  refused(
    40000,
    'two Authorizations',
    get('/plants/1', { Authorization: [authorized.Authorization, authorized.Authorization] }),
    {
      headers: { 'www-authenticate': 'Bearer realm="plant-store", error="invalid_request"' },
    },
  ),
]

const framing: Scenario[] = [
  refused(40000, 'two lengths', post(fern, { 'Content-Length': ['22', '23'] })),
  refused(
    40000,
    'a length and chunks',
    post(fern, { 'Content-Length': '22', 'Transfer-Encoding': 'chunked' }),
  ),
  refused(
    40000,
    'a transfer encoding other than chunked',
    post(fern, { 'Transfer-Encoding': 'gzip, chunked' }),
  ),
  refused(40000, 'chunks in another encoding', postChunks(chunks, 'gzip, chunked')),
  refused(
    40000,
    'chunks in HTTP/1.0',
    Buffer.from(postChunks(chunks).toString().replace('HTTP/1.1', 'HTTP/1.0')),
  ),
  refused(40000, 'a broken chunk', postChunks('zz\r\n')),
  refused(40800, 'a body that never ends', post('{"id":', { 'Content-Length': '100' }), impatient),
  refused(
    40800,
    'an import that never ends',
    upload('ndjson', '{"id":', { 'Content-Length': '100' }),
    impatient,
  ),
]

/** Every method of every path meets the faults of the protocol. HEAD does where GET does. */
const lines = [...methodsByPath].flatMap(([path, methods]) =>
  methods
    .filter((method) => method !== 'HEAD')
    .map((method) => `${method} ${path.replace(/\{\w+\}/, '1')}`),
)

const everywhere = lines.flatMap((line): Scenario[] => [
  refused(40000, `${line} without a Host`, `${line} HTTP/1.1\r\n\r\n`),
  refused(
    40800,
    `${line} with headers that never end`,
    `${line} HTTP/1.1\r\nHost: a\r\n`,
    impatient,
  ),
  refused(
    41400,
    `${line} with a URL that is too long`,
    `${line}?${'x'.repeat(8192)} HTTP/1.1\r\nHost: a\r\n\r\n`,
  ),
  refused(
    41700,
    `${line} with an unknown expectation`,
    `${line} HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n`,
  ),
  refused(
    43100,
    `${line} with headers that are too large`,
    `${line} HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(16_384)}\r\n\r\n`,
  ),
  refused(50500, `${line} over HTTP/2.0`, `${line} HTTP/2.0\r\nHost: a\r\n\r\n`),
])

/** Faults of HTTP itself. */
export const protocol: Scenario[] = [...urls, ...headers, ...framing, ...everywhere]
