import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { joinFields } from '../../src/http/answer.ts'
import { collect, parseStrictly } from '../faults/lab/answer-stream.ts'
import { farewell } from '../faults/lab/hostile-requests.ts'
import { json, startService } from '../support/service.ts'
import { toBytes } from '../support/wire.ts'

/** The id of the plant that the smuggled request creates if it gets through. */
const smuggledId = 666

/** The request that every vector tries to smuggle. */
const inner = toBytes({
  method: 'POST',
  path: '/plants',
  headers: json,
  body: `{"id":${smuggledId},"name":"smuggled"}`,
}).toString('latin1')

const plant = '{"name":"outer"}'
const chunk = `10\r\n${plant}\r\n`
const chunked = 'Transfer-Encoding: chunked'
const bodyLength = `Content-Length: ${inner.length}`
const fields = Object.entries({ Host: 'a', ...json }).map(([name, value]) => `${name}: ${value}`)

/** A replace of plant 1 with these header lines, and the bytes that follow. */
function put(lines: string[], rest: string, version = 'HTTP/1.1'): string {
  return `PUT /plants/1 ${version}\r\n${[...fields, ...lines].join('\r\n')}\r\n\r\n${rest}`
}

function get(path: string, lines: string[] = [], rest = ''): string {
  return `GET ${path} HTTP/1.1\r\n${['Host: a', ...lines].join('\r\n')}\r\n\r\n${rest}`
}

/** Broken framing of a body: one refusal with 400, and the end of the connection. */
const brokenBodies: string[] = [
  put([`Content-Length: ${5 + inner.length}`, chunked], `0\r\n\r\n${inner}`),
  put([chunked, 'Content-Length: 4'], `${chunk}0\r\n\r\n${inner}`),
  put([chunked, 'Content-Length: 0'], `0\r\n\r\n${inner}`),
  put([chunked, 'Connection: keep-alive'], `${chunk}0\r\n\r\n${inner}`, 'HTTP/1.0'),
  ...[
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: identity, chunked',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: chunked;a=b',
    'Transfer-Encoding: \u000bchunked',
    'Transfer-Encoding:\r\n chunked',
    'Transfer-Encoding : chunked',
    'X: y\nTransfer-Encoding: chunked',
    'Transfer-Encoding:',
  ].map((line) => put([line], `0\r\n\r\n${inner}`)),
  ...[
    'Content-Length: 16\r\nContent-Length: 17',
    'Content-Length: 16, 16',
    'Content-Length: +16',
    'Content-Length: -16',
    'Content-Length: 0x10',
    'Content-Length: 1 6',
    'Content-Length: 18446744073709551632',
    'Content-Length:',
    'Content-Length : 16',
  ].map((line) => put([line], plant + inner)),
  ...['0x', '-10', ' 10', '100000000000000010', '10;a\nb', '', '1_0', 'f'].map((size) =>
    put([chunked], `${size}\r\n${plant}\r\n0\r\n\r\n${inner}`),
  ),
  put([chunked], `10\n${plant}\r\n0\r\n\r\n${inner}`),
  put([chunked], `10\r\n${plant}0\r\n\r\n${inner}`),
  put([chunked], `${chunk}0\n\n${inner}`),
  put([chunked], `${chunk}0\r\n${bodyLength}\r\n\r\n${inner}`),
  put([chunked], `${chunk}0\r\n${inner}`),
]

/** Broken heads: one refusal with 400, and the end of the connection. */
const brokenHeads: string[] = [
  get('/healthz').replaceAll('\r\n', '\n'),
  ...['X: y\nContent-Length: 0', 'X: y\rZ', 'X: y\r\n z', 'X: y\u0000z', 'X', ': y'].map((line) =>
    get('/healthz', [line]),
  ),
  ` ${get('/healthz')}`,
  get('/health\u0000z'),
  get('/health\tz'),
  'GET /healthz\r\n',
  get('/healthz').replace('HTTP', 'http'),
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
].map((bytes) => bytes + inner)

/** Requests after which the connection ends, whatever follows, and the status of each. */
const lasts: [bytes: string, status: number][] = [
  ...[...brokenBodies, ...brokenHeads].map((bytes): [string, number] => [bytes, 400]),
  [`GET /healthz\r\n\r\n${inner}`, 505],
  [get('/healthz\r\nX: y') + inner, 505],
  [get('/healthz', ['Connection: close']) + inner, 200],
  [get('/healthz', ['Connection: Upgrade', 'Upgrade: h2c']) + inner, 200],
  [get('/healthz').replace('HTTP/1.1', 'HTTP/1.0') + inner, 200],
  [get('/healthz', ['Expect: 100-continue']) + inner, 200],
  [get('/healthz', ['Expect: 100-continue, x']) + inner, 417],
]

/** Valid though odd framing, and the status of each: what looks like another request is a body. */
const sounds: [bytes: string, status: number][] = [
  [put([`Content-Length: ${16 + inner.length}`], plant + inner), 400],
  [put([chunked], `10;a=b;c="d"\r\n${plant}\r\n0\r\n\r\n`), 201],
  [put([chunked], `${chunk}0\r\nAuthorization: x\r\nHost: b\r\n\r\n`), 201],
  [put([chunked], `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`), 400],
  [`\r\n\r\n${get('/healthz')}`, 200],
  [get('/plants%0d%0aX:y'), 404],
  ...Object.entries({ GET: 200, HEAD: 200, OPTIONS: 204, DELETE: 405, PATCH: 405 }).map(
    ([method, status]): [string, number] => [
      get('/healthz', [bodyLength], inner).replace('GET', method),
      status,
    ],
  ),
  [get('/x', [bodyLength], inner), 404],
  [get('/plants', [bodyLength], inner).replace('GET', 'POST'), 401],
  [get('/plants', ['Host: b', bodyLength], inner), 400],
]

const service = await startService('sqlite::memory:')
const port = Number(new URL(service.url).port)

describe('a smuggled request', () => {
  /** Sends a vector, and checks the answers and what became of the request in it. */
  async function check(sent: Buffer[], statuses: number[]): Promise<string> {
    const answers = parseStrictly(await collect(port, [Buffer.concat(sent)]))
    // Deletes both plants if they are there, so that no vector depends on another.
    await service.call({ method: 'DELETE', path: '/plants/1' })
    const { status } = await service.call({ method: 'DELETE', path: `/plants/${smuggledId}` })
    assert.equal(status, 404, 'the smuggled request was executed')
    const answered = answers.map((answer) => answer.status)
    assert.deepEqual(answered, statuses)
    assert.equal(answers.at(-1)?.headers.get('connection'), 'close')
    return answers.at(-1)?.body ?? ''
  }

  for (const [bytes, status] of lasts) {
    it(`is not executed after ${JSON.stringify(bytes.replace(inner, '…'))}`, async () => {
      const body = await check([Buffer.from(bytes, 'latin1')], [status])
      if (status === 400) assert.equal(JSON.parse(body).error, 40000)
    })
  }

  for (const [bytes, status] of sounds) {
    // Where the connection continues, the farewell shows that both sides see the same end.
    it(`is a part of ${JSON.stringify(bytes.replace(inner, '…'))}`, async () => {
      await check([Buffer.from(bytes, 'latin1'), farewell], [status, 200])
    })
  }

  for (const value of ['a\r\nSet-Cookie: b', 'a\nb', 'a\rb', 'a\0', 'a\u010ab']) {
    it(`has no counterpart in an answer: no header has ${JSON.stringify(value)}`, () => {
      assert.throws(() => joinFields({ fields: [] }, { Link: value }), /The header Link/)
    })
  }

  it('is noticed if it is executed (control)', async () => {
    await assert.rejects(check([Buffer.from(inner, 'latin1'), farewell], [200, 200]), /executed/)
  })
})
