import fc from 'fast-check'
import { text } from '../../json/texts.ts'
import { operatorToken } from '../../support/service.ts'
import { buildRandom, type Random } from './random.ts'

export type HostileCase = ReturnType<typeof buildHostileCase>

/**
 * The last request on every connection. All complete requests before it are answered first, and its
 * answer ends the connection, so that no test has to wait for more.
 */
export const farewell = Buffer.from(
  'GET /healthz HTTP/1.1\r\nHost: plants.test\r\nConnection: close\r\n\r\n',
)

const split = (list: string) => list.split('|')

/** How a request begins; `@` stands for an id. Creates and replaces are most frequent. */
const lines = split(
  'POST /plants|POST /plants|POST /plants|PUT /plants/@|PUT /plants/@|GET /plants/@|GET /plants|' +
    'GET /plants?limit=5|HEAD /plants/@|OPTIONS /plants|DELETE /plants/@',
)
const oddLines = [
  ...split('PATCH /plants|TRACE /|QUERY /plants|M-SEARCH *|post /plants|POSTX /plants'),
  ...split('OPTIONS *|GET //plants|GET /plants/|GET /plants/../healthz|POST /%70lants|GET plants'),
  ...split('GET /plants%2f1|GET /plants#x|GET http://a/plants|GET http://a:b@c/plants|GET http://'),
  ...split('GET HTTPS://[::1]:1/plants?limit=1|GET /healthz|GET /readyz|GET /openapi.json'),
  ...split('GET /plants/-0|PUT /plants/01|GET /plants/1.0|DELETE /plants/1e3|GET /plants/%31'),
  ...split('GET /plants/%00|GET /plants/%zz|PUT /plants/9223372036854775808|GET /plants/1/2|GET'),
  ...split('GET /plants?limit=0|GET /plants?limit|GET /plants?after=1e2|GET /plants?tag=%zz'),
  ...split('GET /plants?tag=%ff|GET /plants?=x|GET /plants?l%69mit=1|GET /plants /1| /plants'),
  ...['G\u0000T /plants', 'GET /plants\u0000', 'GET /plants/\u00ff', 'GET /plants\t'],
  ...['GET /docs', 'CONNECT a:80'],
  ...[`GET /plants?${'x'.repeat(8192)}`, `GET /${'a/'.repeat(2000)}`],
]
const versions = split('HTTP/1.0|HTTP /1.1| HTTP/1.1 ||HTTP/0.9|HTTP/2.0|HTTP/1.|http/1.1')
const lineEnds = ['\n', '\r', '\r\r\n', '\r\n ']

/** Further header fields, each a line as it is sent. */
const fields = [
  ...split('If-Match: *|If-Match: "1"|If-Match: W/"1"|If-Match: "|If-Match:|If-Match: "a", , "b"'),
  ...split('If-None-Match: *|If-None-Match: ,|If-None-Match: *, "a"|Accept: ;q=1|Accept: ,'),
  ...split('Idempotency-Key:|Idempotency-Key: a b|Idempotency-Key: \u00e9|Idempotency-Key: k1'),
  ...split('Accept: text/csv;q=0.5, */*;q=x|Accept-Encoding: gzip;q=0|Accept-Encoding: ,;'),
  ...split('Content-Type: application/json; charset=latin1|Content-Type: text/plain'),
  ...split('Content-Encoding: gzip|Content-Encoding:|Expect: 100-continue|Expect: 200-ok|Expect:'),
  ...split('Connection: close|Connection: upgrade|Connection: Transfer-Encoding|Connection:'),
  ...split('Upgrade: h2c|Upgrade: websocket|Upgrade:|Host: b|Host:|Host: a b|Host: a:99999999'),
  ...split('Authorization: Bearer|Authorization: Bearer x|Origin: http://a|Origin: null|Origin:'),
  ...split('X:x|X : x|X: : x|X|X:\r\n x|Bad Name: x|: x|X: a\u0000b|X: a\rb|X: \u00ff'),
  ...[`Authorization: Basic ${operatorToken}`, `Authorization: Bearer ${operatorToken}x`],
  ...[`X: ${'x'.repeat(16_400)}`, `If-Match: "${'a'.repeat(2000)}"`],
  ...[`Idempotency-Key: ${'x'.repeat(256)}`, 'Content-Type: "'],
]

/** How the length of a body may be told wrongly; 7999 is more than is ever sent. */
const framings = [
  ...split('Content-Length: 7999|Content-Length: 7999|Content-Length: 3|Content-Length: 9e9'),
  ...split('Content-Length: 7999|Content-Length: 7999|Content-Length: 9999'),
  ...split('Content-Length: 1048576|Content-Length: +30|Content-Length: 30.0|Content-Length:'),
  ...split('Content-Length: 30, 30|Content-Length: 30\r\nTransfer-Encoding: chunked'),
  ...split('Content-Length: 30\r\nContent-Length: 1|Transfer-Encoding: Chunked|Transfer-Encoding:'),
  ...split('Transfer-Encoding: chunked, chunked|Transfer-Encoding: gzip, chunked'),
  ...split('Transfer-Encoding: xchunked|Transfer-Encoding: identity'),
]

/** Texts that are JSON, or nearly: each case picks some. */
const texts = fc.sample(text, { seed: 1, numRuns: 2_000 })

/**
 * Builds the bytes of one connection, and its pieces in order, each sent in a turn of its own. They
 * depend only on the seed and the index.
 */
export function buildHostileCase(seed: number, index: number) {
  const random = buildRandom(seed, index)
  const count = random.isLikely(0.2) ? 2 : 1
  const requests = Array.from({ length: count }, (_, number) =>
    // Most ids are new, and some are shared with other cases.
    toRequest(random, random.isLikely(0.7) ? 1000 + index * 2 + number : random.below(50)),
  )
  const whole = Buffer.concat(requests)
  const bytes = random.isLikely(0.35) ? mutate(random, whole) : whole
  const sent = Buffer.concat([bytes, farewell])
  return { seed, index, bytes, pieces: random.isLikely(0.2) ? cut(random, sent) : [sent] }
}

/** Builds a request. Many are valid, so that there are plants. */
function toRequest(random: Random, id: number): Buffer {
  const isOdd = random.isLikely(0.6)
  const rarely = <Item>(share: number, odd: readonly Item[], usual: Item): Item =>
    isOdd && random.isLikely(share) ? random.pick(odd) : usual
  const line = rarely(0.15, oddLines, random.pick(lines)).replace('@', `${id}`)
  const plant = `{"id":${id},"name":"Fern ${random.below(1000)}"}`
  const hasBody = /^P/.test(line) || rarely(0.1, [true], false)
  const body = Buffer.from(rarely(0.5, texts, plant))
  const framed = isOdd && random.isLikely(0.2) ? toChunks(random, body) : body
  const framing = framed === body ? `Content-Length: ${body.length}` : 'Transfer-Encoding: chunked'
  const given = [
    rarely(0.03, [''], 'Host: plants.test'),
    rarely(0.1, [''], `Authorization: Bearer ${operatorToken}`),
    rarely(0.1, [''], 'Content-Type: application/json'),
    hasBody ? rarely(0.25, framings, framing) : '',
    rarely(0.3, ['Idempotency-Key: k1', 'Idempotency-Key: k2'], ''),
    ...[1, 2].map(() => rarely(0.4, fields, '')),
  ].filter((one) => one !== '')
  const head = [`${line} ${rarely(0.1, versions, 'HTTP/1.1')}`, ...random.shuffle(given), '', '']
  const start = Buffer.from(head.join(rarely(0.03, lineEnds, '\r\n')), 'latin1')
  return Buffer.concat([start, hasBody ? framed : Buffer.alloc(0)])
}

function toChunks(random: Random, body: Buffer): Buffer {
  const chunks: Buffer[] = []
  for (let start = 0; start < body.length; ) {
    const end = Math.min(body.length, start + 1 + random.below(40))
    chunks.push(Buffer.from(`${(end - start).toString(16)}\r\n`), body.subarray(start, end))
    chunks.push(Buffer.from('\r\n'))
    start = end
  }
  return Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')])
}

const interesting = [...Buffer.from('\r\n\t :;,"/%{}[]0-\\')].concat(0, 0x7f, 0x80, 0xff)

/** Puts one to three bytes, or up to 16 that are there, in the place of up to 16 others. */
function mutate(random: Random, bytes: Buffer): Buffer {
  let mutated = bytes
  for (let times = 1 + random.below(3); times > 0; times--) {
    const at = random.below(mutated.length + 1)
    const length = () => random.below(2) * random.below(17)
    const copied = mutated.subarray(at, at + length())
    const added = random.isLikely(0.5) ? Buffer.from([random.pick(interesting)]) : copied
    mutated = Buffer.concat([mutated.subarray(0, at), added, mutated.subarray(at + length())])
  }
  return mutated
}

function cut(random: Random, bytes: Buffer): Buffer[] {
  const offsets = Array.from({ length: 1 + random.below(4) }, () => random.below(bytes.length))
  const ordered = [0, ...offsets.sort((one, other) => one - other), bytes.length]
  return ordered.slice(1).map((end, index) => bytes.subarray(ordered[index], end))
}
