import { json, operatorToken } from '../../support/service.ts'
import { toBytes } from '../../support/wire.ts'
import { frame } from './hostile-framing.ts'
import { toBody, toPlantJson } from './hostile-json.ts'
import type { Random } from './random.ts'

const usualMethods = [
  'POST',
  'POST',
  'POST',
  'GET',
  'GET',
  'PUT',
  'PUT',
  'DELETE',
  'HEAD',
  'OPTIONS',
]
const oddMethods = [
  'PATCH',
  'TRACE',
  'QUERY',
  'M-SEARCH',
  'post',
  'POSTX',
  '',
  'PRI',
  'CONNECT',
  'G\u0000T',
]

const usualVersions = [
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.0',
]
const oddVersions = [
  'HTTP/0.9',
  'HTTP/2.0',
  'HTTP/1.2',
  'HTTP/1.',
  'HTTP/11.1',
  'http/1.1',
  'HTTP /1.1',
  ' HTTP/1.1 ',
  'RTSP/1.0',
  '',
]

const ids = [
  '0',
  '-1',
  '01',
  '-0',
  '1.0',
  '1e3',
  '%31',
  '%00',
  '%zz',
  '9223372036854775807',
  '9223372036854775808',
  '-9223372036854775808',
  'x',
  '..',
  '1/2',
  '1;a=b',
]

const oddTargets = [
  '*',
  '',
  '/',
  '//plants',
  '/plants/',
  '/plants/../healthz',
  '/%70lants',
  '/plants%2f1',
  '/plants#x',
  '/plants\\1',
  '/plants /1',
  '/plants\u0000',
  '/plants/\u00ff',
  '/plants\t',
  'plants',
  'http://a/plants',
  'http://a:b@c/plants',
  'HTTPS://[::1]:1/plants?limit=1',
  'http://',
  'ftp://a/plants',
  'a:80',
  `/plants?${'x'.repeat(8192)}`,
  `/${'a/'.repeat(2000)}`,
  '/healthz',
  '/readyz',
  '/openapi.json',
  '/docs',
]

const values = [
  '',
  '0',
  '1',
  '5',
  '1000',
  '1001',
  '-5',
  '1e2',
  '%zz',
  '%00',
  '%ff',
  '+',
  'indoor',
  '\u00e9',
  '=',
]

const types = [
  'application/json; charset=utf-8',
  'Application/JSON',
  'application/json;charset="UTF-8"',
  'application/json; charset=latin1',
  'application/json;',
  'application/json, application/json',
  'application/vnd.api+json',
  'text/plain',
  'multipart/form-data; boundary=x',
  '*/*',
  '',
  ';',
  '"',
]

const credentials = [
  'Bearer',
  'Bearer ',
  'Bearer x',
  'Basic dXNlcjpwYXNz',
  'Bearer plst_000000000000000000000000000000000000',
  `Bearer ${operatorToken}x`,
  `Bearer ${operatorToken.slice(1)}`,
  `Bearer ${operatorToken.toUpperCase()}`,
  `Basic ${operatorToken}`,
  operatorToken,
]

/** Header fields and the values that they may get. */
const fields: [name: string, values: readonly string[]][] = [
  ['If-Match', ['*', '"1"', 'W/"1"', '"', '', '"a", , "b"', `"${'a'.repeat(2000)}"`]],
  ['If-None-Match', ['*', '"1"', 'W/"1"', ',', '*, "a"']],
  ['Idempotency-Key', ['k4', '', 'a b', 'x'.repeat(256), '\u00e9']],
  ['Accept', ['*/*', 'text/csv', 'application/x-ndjson', ';q=1', 'text/csv;q=0.5, */*;q=x', ',']],
  ['Accept-Encoding', ['gzip', 'gzip;q=0', '*', ',;', 'identity']],
  ['Origin', ['http://a', 'null', '']],
  ['Access-Control-Request-Method', ['PUT', '']],
  ['Expect', ['100-continue', '100-Continue', '200-ok', '']],
  ['Connection', ['close', 'keep-alive', 'upgrade', 'Transfer-Encoding', 'close, host', '']],
  ['Upgrade', ['h2c', 'websocket', '']],
  ['Content-Encoding', ['identity', 'gzip', '']],
  ['Host', ['b', '', 'a b', 'a/b', '[::1]:1', 'a:99999999']],
  ['Authorization', credentials],
  ['Cookie', [`access_token=${'x'.repeat(50)}`]],
  ['TE', ['trailers']],
  ['X-Request-Id', ['forged']],
  ['X', ['x'.repeat(16_400), 'a\u0000b', 'a\u0001b', 'a\rb', '\u00ff']],
  ['Bad Name', ['x']],
  ['', ['x']],
]

/** Builds a request: a third are valid, so that there are plants, the others follow the grammar. */
export function toRequest(random: Random, id: string): Buffer {
  return random.isLikely(0.35) ? toGoodRequest(random, id) : toOddRequest(random, id)
}

function toGoodRequest(random: Random, id: string): Buffer {
  const method = random.pick(['POST', 'POST', 'POST', 'PUT', 'GET', 'DELETE'])
  const path = method === 'POST' ? '/plants' : `/plants/${id}`
  const hasBody = method === 'POST' || method === 'PUT'
  const body = hasBody ? { body: toPlantJson(random, id) } : {}
  return toBytes({ method, path, headers: json, ...body })
}

function toOddRequest(random: Random, id: string): Buffer {
  const method = random.isLikely(0.95) ? random.pick(usualMethods) : random.pick(oddMethods)
  const version = random.isLikely(0.95) ? random.pick(usualVersions) : random.pick(oddVersions)
  const lineEnd = random.isLikely(0.97) ? '\r\n' : random.pick(['\n', '\r', '\r\r\n', '\r\n '])
  const body = Buffer.from(toBody(random, id), random.isLikely(0.97) ? 'utf8' : 'utf16le')
  const hasBody = method === 'POST' || method === 'PUT' || random.isLikely(0.1)
  const { lines, content } = frame(random, hasBody ? body : Buffer.alloc(0), hasBody)
  lines.push(...toFields(random))
  const space = random.isLikely(0.98) ? ' ' : random.pick(['  ', '\t', ''])
  const line = [method, toTarget(random, method, id), version].join(space)
  const head = `${[line, ...lines].join(lineEnd)}${lineEnd}${lineEnd}`
  return Buffer.concat([Buffer.from(head, 'latin1'), content])
}

function toTarget(random: Random, method: string, id: string): string {
  if (random.isLikely(0.1)) return random.pick(oddTargets)
  const isOne =
    method === 'PUT' || method === 'DELETE' || (method !== 'POST' && random.isLikely(0.5))
  const own = random.isLikely(0.7) ? id : random.pick(ids)
  const path = isOne ? `/plants/${own}` : '/plants'
  if (random.isLikely(0.7)) return path
  const pairs = Array.from({ length: 1 + random.below(3) }, () => {
    const name = random.pick(['limit', 'after', 'tag', 'l%69mit', 'colour', '', 'limit[]'])
    return random.isLikely(0.9) ? `${name}=${random.pick(values)}` : name
  })
  return `${path}?${pairs.join('&')}`
}

function toFields(random: Random): string[] {
  const given: [name: string, value: string][] = []
  if (random.isLikely(0.97)) given.push(['Host', 'plants.test'])
  if (random.isLikely(0.8)) given.push(['Authorization', `Bearer ${operatorToken}`])
  else if (random.isLikely(0.7)) given.push(['Authorization', random.pick(credentials)])
  if (random.isLikely(0.9)) given.push(['Content-Type', 'application/json'])
  else if (random.isLikely(0.8)) given.push(['Content-Type', random.pick(types)])
  if (random.isLikely(0.1)) given.push(['Idempotency-Key', random.pick(['k1', 'k2', 'k3'])])
  for (let more = random.isLikely(0.4) ? 1 + random.below(3) : 0; more > 0; more--) {
    const [name, values] = random.pick(fields)
    given.splice(random.below(given.length + 1), 0, [name, random.pick(values)])
  }
  if (random.isLikely(0.03)) given.push(random.pick(given.length > 0 ? given : [['X', 'y']]))
  return given.map(([name, value]) => toField(random, name, value))
}

/** Writes a field in one of many ways, some of them invalid. */
function toField(random: Random, name: string, value: string): string {
  if (random.isLikely(0.9)) return `${name}: ${value}`
  const cased = random.pick([name.toLowerCase(), name.toUpperCase(), name])
  const colon = random.isLikely(0.8) ? ':' : random.pick([' :', '\t:', ': :', '', ':\r\n '])
  const blanks = random.pick(['', ' ', '\t', '   '])
  return `${cased}${colon}${blanks}${value}${random.pick(['', ' ', '\t'])}`
}
