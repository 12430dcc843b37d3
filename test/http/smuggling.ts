import { json } from '../support/service.ts'
import { toBytes } from '../support/wire.ts'

/** The id of the plant that the smuggled request creates if it gets through. */
export const smuggledId = 666

/** The request that every vector tries to smuggle. */
const inner = toBytes({
  method: 'POST',
  path: '/plants',
  headers: json,
  body: `{"id":${smuggledId},"name":"smuggled"}`,
}).toString('latin1')

const innerLength = inner.length
const plant = '{"name":"outer"}'
const chunk = `10\r\n${plant}\r\n`

/** Bytes that hide a request, the statuses of their answers, and whether the last one closes. */
export interface Vector {
  readonly title: string
  readonly bytes: string
  readonly statuses: readonly number[]
  readonly isClosed: boolean
}

/** Broken framing: one refusal, and the end of the connection. */
function broken(title: string, bytes: string, status = 400): Vector {
  return { title, bytes, statuses: [status], isClosed: true }
}

/** Valid though odd framing: what looks like another request is a body. */
function sound(title: string, bytes: string, ...statuses: number[]): Vector {
  return { title, bytes, statuses, isClosed: false }
}

/** Valid framing of a request that ends the connection, whatever follows. */
function last(title: string, bytes: string, ...statuses: number[]): Vector {
  return { title, bytes, statuses, isClosed: true }
}

const fields = Object.entries({ Host: 'a', ...json }).map(([name, value]) => `${name}: ${value}`)

/** A replace of plant 1 with these header lines, and the bytes that follow. */
function put(lines: string[], rest: string, version = 'HTTP/1.1'): string {
  return `PUT /plants/1 ${version}\r\n${[...fields, ...lines].join('\r\n')}\r\n\r\n${rest}`
}

function get(path: string, lines: string[] = [], rest = ''): string {
  return `GET ${path} HTTP/1.1\r\n${['Host: a', ...lines].join('\r\n')}\r\n\r\n${rest}`
}

const chunkedThenInner = `0\r\n\r\n${inner}`
const chunked = 'Transfer-Encoding: chunked'

const lengthsAndChunks = [
  broken('CL.TE', put([`Content-Length: ${5 + innerLength}`, chunked], chunkedThenInner)),
  broken('TE.CL', put([chunked, 'Content-Length: 4'], `${chunk}0\r\n\r\n${inner}`)),
  broken('TE.CL with a length of 0', put([chunked, 'Content-Length: 0'], chunkedThenInner)),
  broken('CL.TE in HTTP/1.0', put(['Content-Length: 0', chunked], chunkedThenInner, 'HTTP/1.0')),
  broken(
    'chunks in HTTP/1.0 that asks to stay',
    put([chunked, 'Connection: keep-alive'], `${chunk}0\r\n\r\n${inner}`, 'HTTP/1.0'),
  ),
  ...[
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity',
    'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding: identity, chunked',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: "chunked"',
    'Transfer-Encoding: chunked;a=b',
    'Transfer-Encoding: ,chunked',
    'Transfer-Encoding: chunked,',
    'Transfer-Encoding: \u000bchunked',
    'Transfer-Encoding: \u0000chunked',
    'Transfer-Encoding: chunke\u00e4',
    'Transfer-Encoding:\r\n chunked',
    'Transfer-Encoding : chunked',
    'Transfer-Encoding\t: chunked',
    ' Transfer-Encoding: chunked',
    'X: y\nTransfer-Encoding: chunked',
    'X: y\rTransfer-Encoding: chunked',
    'X\u0000: y\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding:',
  ].map((line) => broken(`TE.TE: ${JSON.stringify(line)}`, put([line], chunkedThenInner))),
]

const lengths = [
  ...[
    'Content-Length: 16\r\nContent-Length: 17',
    'Content-Length: 16\r\nContent-Length: 16',
    'Content-Length: 16, 16',
    'Content-Length: 16,',
    'Content-Length: +16',
    'Content-Length: -16',
    'Content-Length: 0x10',
    'Content-Length: 1 6',
    'Content-Length: 16.0',
    'Content-Length: 1e1',
    'Content-Length: \u000b16',
    'Content-Length: 99999999999999999999999',
    'Content-Length: 18446744073709551632',
    'Content-Length:',
    'Content-Length : 16',
    'Content-Length:\r\n 16\r\n 0',
    'Content-Length: 16\u0000',
  ].map((line) => broken(`the length ${JSON.stringify(line)}`, put([line], plant + inner))),
  sound(
    'a length of the rest, for a body that is no JSON',
    put([`Content-Length: ${16 + innerLength}`], plant + inner),
    400,
  ),
]

const chunks = [
  ...[
    ['0x', '0x10'],
    ['a minus', '-10'],
    ['a plus', '+10'],
    ['a space before it', ' 10'],
    ['a space after it', '10 '],
    ['more digits than fit', '100000000000000010'],
    ['a line feed in its extension', '10;a\nb'],
    ['NUL in its extension', '10;a\u0000b'],
    ['no size', ''],
    ['an underscore', '1_0'],
  ].map(([title, size]) =>
    broken(
      `a chunk size with ${title}`,
      put([chunked], `${size}\r\n${plant}\r\n${chunkedThenInner}`),
    ),
  ),
  broken(
    'a chunk whose size ends in a line feed',
    put([chunked], `10\n${plant}\r\n${chunkedThenInner}`),
  ),
  broken(
    'a chunk that is longer than its size',
    put([chunked], `f\r\n${plant}\r\n${chunkedThenInner}`),
  ),
  broken('a chunk without an end', put([chunked], `10\r\n${plant}${chunkedThenInner}`)),
  broken('a last chunk that ends in a line feed', put([chunked], `${chunk}0\n\n${inner}`)),
  sound('a chunk extension', put([chunked], `10;a=b;c="d"\r\n${plant}\r\n0\r\n\r\n`), 201),
  sound(
    'trailers that would change fields that were checked before',
    put([chunked], `${chunk}0\r\nAuthorization: x\r\nHost: b\r\n\r\n`),
    201,
  ),
  broken(
    'trailers that would change the framing',
    put([chunked], `${chunk}0\r\nContent-Length: ${innerLength}\r\n\r\n${inner}`),
  ),
  sound(
    'a request within a chunk',
    put([chunked], `${innerLength.toString(16)}\r\n${inner}\r\n0\r\n\r\n`),
    400,
  ),
  broken('a trailer without a colon', put([chunked], `${chunk}0\r\n${inner}`)),
]

const lines = [
  // The parser takes a line feed after the version for a part of it.
  broken('line feeds alone', get('/healthz').replaceAll('\r\n', '\n') + inner),
  broken('a line feed in a header', get('/healthz', ['X: y\nContent-Length: 0']) + inner),
  broken('a carriage return in a header', get('/healthz', ['X: y\rZ']) + inner),
  broken('a header that is folded', get('/healthz', ['X: y\r\n z']) + inner),
  broken('NUL in a header', get('/healthz', ['X: y\u0000z']) + inner),
  broken('a header without a colon', get('/healthz', ['X']) + inner),
  broken('a header without a name', get('/healthz', [': y']) + inner),
  broken('a space before the method', ` ${get('/healthz')}${inner}`),
  broken('a line break in the target', get('/healthz\r\nX: y') + inner, 505),
  broken('NUL in the target', get('/health\u0000z') + inner),
  broken('a tab in the target', get('/health\tz') + inner),
  broken('HTTP/0.9', `GET /healthz\r\n\r\n${inner}`, 505),
  broken('HTTP/0.9 with a request after it', `GET /healthz\r\n${inner}`),
  broken('HTTP/1.1 in small letters', get('/healthz').replace('HTTP', 'http') + inner),
  broken('the preface of HTTP/2', `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${inner}`),
  broken('CONNECT', `CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n${inner}`),
  sound('empty lines before a request', `\r\n\r\n${get('/healthz')}`, 200),
  sound('a target with an encoded line break', get('/plants%0d%0aX:y'), 404),
  sound('a target of another host', get('http://other.test/healthz', [`X: ${'y'.repeat(9)}`]), 200),
]

const bodies = [
  ...['GET', 'HEAD', 'OPTIONS', 'DELETE', 'PATCH'].map((method) =>
    sound(
      `${method} with a request as its body`,
      get('/healthz', [`Content-Length: ${innerLength}`], inner).replace('GET', method),
      { GET: 200, HEAD: 200, OPTIONS: 204 }[method] ?? 405,
    ),
  ),
  sound(
    'an unknown path with a request as its body',
    get('/x', [`Content-Length: ${innerLength}`], inner),
    404,
  ),
  sound(
    'no token, and a request as the body',
    get('/plants', [`Content-Length: ${innerLength}`], inner).replace('GET', 'POST'),
    401,
  ),
  sound(
    'two Hosts, and a request as the body',
    get('/plants', ['Host: b', `Content-Length: ${innerLength}`], inner),
    400,
  ),
]

const endings = [
  last('a request after "Connection: close"', get('/healthz', ['Connection: close']) + inner, 200),
  last(
    'a request after one for an upgrade',
    get('/healthz', ['Connection: Upgrade', 'Upgrade: h2c']) + inner,
    200,
  ),
  last('a request after HTTP/1.0', get('/healthz').replace('HTTP/1.1', 'HTTP/1.0') + inner, 200),
  last(
    'a request instead of an expected body',
    get('/healthz', ['Expect: 100-continue']) + inner,
    200,
  ),
  last(
    'a request after another expectation',
    get('/healthz', ['Expect: 100-continue, x']) + inner,
    417,
  ),
]

export const vectors: readonly Vector[] = [
  ...lengthsAndChunks,
  ...lengths,
  ...chunks,
  ...lines,
  ...bodies,
  ...endings,
]
