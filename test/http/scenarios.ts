import { type ErrorNumber, toStatus } from '../../src/contract/errors.ts'
import type { Timeouts } from '../../src/contract/limits.ts'
import {
  type OperationName,
  operations,
  type PageName,
  pages,
} from '../../src/contract/operations.ts'
import type { Scope } from '../../src/contract/scopes.ts'
import type { StoreFault } from '../support/engines.ts'
import { authorized, json } from '../support/service.ts'
import { type Request, toBytes } from '../support/wire.ts'

/**
 * What one request gets, from a store that holds the plants 1 (Monstera, indoor), -5 (Cactus, no tag) and 50 to 53
 * (Rose, no tag), and in which the key `used-key` was used for the plant 60 (Key).
 */
export interface Scenario {
  readonly title: string
  /** The operation or page that is asked for, if the request gets as far as that. */
  readonly of: OperationName | PageName | undefined
  readonly request: Request | Buffer | string
  readonly status: number
  readonly error?: ErrorNumber
  /** The body to the byte, or what it must match. */
  readonly body?: string | RegExp
  readonly headers?: Readonly<Record<string, string | RegExp>>
  /** A service that is made otherwise than the usual one. */
  readonly fault?: StoreFault | 'bug' | 'no ping' | 'always full' | 'rate limit'
  readonly timeouts?: Partial<Timeouts>
}

type Target = Scenario['of']
type Details = Partial<Scenario>

/** Stand in a header for tokens that the suite issues. */
export const expiredToken = 'the-expired-token'
export const readerToken = 'the-token-that-only-reads'
export const writerToken = 'the-token-that-only-writes'

/** Stands in a header for the entity tags of these plants. */
export const tagOf = { 1: 'the-tag-of-1', 50: 'the-tag-of-50', 52: 'the-tag-of-52' }

const challenge = 'Bearer realm="plant-store"'
const fern = '{"id":7,"name":"Fern"}'
const impatient = { timeouts: { headersTimeoutMs: 200, requestTimeoutMs: 400 } }
const retryAfter = { headers: { 'retry-after': /^\d+$/ } }

function answered(
  title: string,
  of: Target,
  request: Scenario['request'],
  details: Details = {},
): Scenario {
  return { title, of, request, status: 200, ...details }
}

function refused(
  error: ErrorNumber,
  title: string,
  of: Target,
  request: Scenario['request'],
  details: Details = {},
): Scenario {
  return { title: `${error}: ${title}`, of, request, status: toStatus(error), error, ...details }
}

function post(body: string | Buffer, headers: Request['headers'] = {}): Request {
  return { method: 'POST', path: '/plants', body, headers: { ...json, ...headers } }
}

function get(path: string, headers: Request['headers'] = authorized): Request {
  return { path, headers }
}

function inChunks(chunks: string, encoding = 'chunked'): Buffer {
  const head = {
    method: 'POST',
    path: '/plants',
    headers: { ...json, 'Transfer-Encoding': encoding },
  }
  return Buffer.concat([toBytes(head), Buffer.from(chunks)])
}

const creates: Scenario[] = [
  answered(
    'a media type with an empty parameter and a quoted semicolon',
    'createPlant',
    post('{"id":16,"name":"Fern"}', {
      'Content-Type': 'application/json; p="a;\\"b" ; charset=utf-8;',
    }),
  ),
  answered(
    'brackets in a string count for no nesting',
    'createPlant',
    post(`{"id":17,"name":"\\"${'['.repeat(40)}${'{'.repeat(40)}"}`),
  ),
  refused(
    40001,
    'nesting behind a quote that is escaped',
    'createPlant',
    post(`{"id":7,"name":"\\"","z":${'['.repeat(200_000)}`),
  ),
  refused(
    40001,
    'a member twice, as an array and as an object',
    'createPlant',
    post('{"id":7,"name":"Fern","z":[],"z":{}}'),
  ),
  ...[
    'application/json; charset=utf-8; charset=utf-8',
    'application/json; charset',
    'application/json; =x',
    'application/jsonx',
    'application/json x',
    'text/json',
    '*/*',
    '',
  ].map((type) =>
    refused(41500, `the media type "${type}"`, 'createPlant', post(fern, { 'Content-Type': type })),
  ),
  refused(41500, 'a large body without a media type', 'createPlant', {
    ...post(''),
    headers: { ...authorized, 'Content-Length': '2097152' },
  }),
  refused(
    41300,
    'a length that is too large, before the body comes',
    'createPlant',
    post('', { 'Content-Length': '2097152', Expect: '100-continue' }),
  ),
  answered(
    'the plant without its id, its address and its tag',
    'createPlant',
    post('{"id":7,"name":"Fern","tag":"shade"}'),
    {
      body: '{"name":"Fern","tag":"shade"}',
      headers: {
        location: '/plants/7',
        etag: /^"[0-9a-f]{1,16}"$/,
        'content-type': 'application/json; charset=utf-8',
      },
    },
  ),
  answered(
    'a create without a tag is answered without one',
    'createPlant',
    post('{"id":8,"name":"Fern"}'),
    { body: '{"name":"Fern"}' },
  ),
  answered(
    'an empty name and an empty tag are kept',
    'createPlant',
    post('{"id":10,"name":"","tag":""}'),
    { body: '{"name":"","tag":""}' },
  ),
  answered(
    'members that the shape does not name are ignored',
    'createPlant',
    post(
      '{"id":9,"name":"Fern","colour":["green",1.5,null,1e999],"__proto__":{"tag":"x"},"constructor":1}',
    ),
    { body: '{"name":"Fern"}' },
  ),
  answered(
    'a media type in any case, with a charset and other parameters',
    'createPlant',
    post('{"id":11,"name":"Fern"}', { 'Content-Type': 'Application/JSON ; Charset="UTF-8"; x=y' }),
  ),
  answered(
    'a body in chunks',
    'createPlant',
    inChunks('a\r\n{"id":12,"\r\nd\r\nname":"Fern"}\r\n0\r\n\r\n'),
    { body: '{"name":"Fern"}' },
  ),
  answered(
    'identity is no content encoding',
    'createPlant',
    post('{"id":13,"name":"Fern"}', { 'Content-Encoding': 'Identity' }),
  ),
  answered(
    'a client that waits to be asked for its body is asked',
    'createPlant',
    post('{"id":14,"name":"Fern"}', { Expect: '100-Continue' }),
  ),
  answered(
    'a URL in absolute form',
    'createPlant',
    { ...post('{"id":15,"name":"Fern"}'), path: 'http://other.test/plants' },
    {
      headers: { location: '/plants/15' },
    },
  ),
  refused(40900, 'the id is taken', 'createPlant', post('{"id":1,"name":"Other"}'), {
    body: /id 1 exists/,
  }),
  refused(40001, 'a body that is not JSON', 'createPlant', post('{"id":7,')),
  refused(40002, 'an empty body', 'createPlant', post('')),
  refused(40002, 'a body of white space', 'createPlant', post(' \r\n\t ')),
  refused(40002, 'no body and no media type', 'createPlant', { ...post(''), headers: authorized }),
  refused(40002, 'a body of white space without a media type', 'createPlant', {
    ...post(' \n'),
    headers: authorized,
  }),
  refused(40003, 'a missing member', 'createPlant', post('{"id":7}'), {
    body: '{"error":40003,"message":"The member \\"name\\" is missing."}',
  }),
  refused(40003, 'an array', 'createPlant', post('[{"id":7,"name":"Fern"}]'), {
    body: /A JSON object is expected, but this is an array/,
  }),
  refused(
    41300,
    'a body that is too large',
    'createPlant',
    post(`{"id":7,"name":"${'x'.repeat(1024 * 1024)}"}`),
  ),
  refused(
    41300,
    'a body in chunks that is too large',
    'createPlant',
    inChunks(`110000\r\n${'x'.repeat(0x110000)}\r\n0\r\n\r\n`),
  ),
  refused(41500, 'another media type', 'createPlant', post(fern, { 'Content-Type': 'text/plain' })),
  refused(41500, 'no media type', 'createPlant', { ...post(fern), headers: authorized }),
  refused(
    41500,
    'another charset',
    'createPlant',
    post(fern, { 'Content-Type': 'application/json; charset=utf-16' }),
  ),
  refused(41500, 'a content encoding', 'createPlant', post(fern, { 'Content-Encoding': 'gzip' })),
]

function put(path: string, body: string, headers: Request['headers'] = {}): Request {
  return { method: 'PUT', path, body, headers: { ...json, ...headers } }
}

function del(path: string, headers: Request['headers'] = {}): Request {
  return { method: 'DELETE', path, headers: { ...authorized, ...headers } }
}

const rose = '{"name":"Rose","tag":"garden"}'

const wrongIds = [
  '01',
  '-0',
  '1.0',
  '1e3',
  '+1',
  '%201',
  '1%20',
  'abc',
  '9223372036854775808',
  '-9223372036854775809',
  '9'.repeat(200),
  '%00',
  '--1',
  '-',
  '%D9%A3',
]

const gets: Scenario[] = [
  answered('the plant with its id and tag', 'getPlant', get('/plants/1'), {
    body: '{"id":1,"name":"Monstera","tag":"indoor"}',
    headers: { etag: /^"[0-9a-f]{1,16}"$/ },
  }),
  answered('a plant that has no tag, without the member', 'getPlant', get('/plants/-5'), {
    body: '{"id":-5,"name":"Cactus"}',
  }),
  answered(
    'HEAD: the headers of the GET and no body',
    'getPlant',
    { ...get('/plants/1'), method: 'HEAD' },
    {
      body: '',
      headers: { 'content-length': '41', etag: /^"/ },
    },
  ),
  answered('an id that is percent-encoded', 'getPlant', get('/plants/%31')),
  answered('a URL of just the longest length', 'getPlant', get(`/plants/1?${'x'.repeat(8182)}`)),
  refused(40401, 'an absent plant', 'getPlant', get('/plants/404')),
  ...wrongIds.map((id) =>
    refused(40004, `the id ${id.slice(0, 20)} in a path`, 'getPlant', get(`/plants/${id}`)),
  ),
]

const lists: Scenario[] = [
  answered(
    'the last page, without a next one',
    'listPlants',
    get('/plants?after=9223372036854775000'),
    { body: '[]', headers: { link: '' } },
  ),
  answered(
    'all plants that have a tag, without a next page',
    'listPlants',
    get('/plants?tag=indoor&limit=1000'),
    { headers: { link: '' } },
  ),
  answered(
    'a page in ascending order, and where the next one is',
    'listPlants',
    get('/plants?limit=2&after=-6'),
    {
      body: '[{"id":-5,"name":"Cactus"},{"id":1,"name":"Monstera","tag":"indoor"}]',
      headers: { link: '</plants?limit=2&after=1>; rel="next"' },
    },
  ),
  answered('the plants with a tag', 'listPlants', get('/plants?tag=indoor&limit=1'), {
    body: '[{"id":1,"name":"Monstera","tag":"indoor"}]',
  }),
  answered('no plants with a tag that none has', 'listPlants', get('/plants?tag=no+such+tag'), {
    body: '[]',
    headers: { link: '' },
  }),
  answered('no plants after the last id', 'listPlants', get('/plants?after=9223372036854775807'), {
    body: '[]',
  }),
  answered(
    'parameters that it does not know are ignored',
    'listPlants',
    get('/plants?colour=green&colour=red&limit=1000&%zz'),
    { body: /^\[\{"id":-5,/ },
  ),
  answered(
    'HEAD: the headers of the list',
    'listPlants',
    { ...get('/plants?limit=1'), method: 'HEAD' },
    { body: '', headers: { link: /rel="next"/ } },
  ),
  ...[
    'limit=0',
    'limit=-1',
    'limit=1001',
    'limit=1e2',
    'limit=abc',
    'limit=',
    'limit',
    'limit=01',
    'limit=1&limit=1',
    'limit=%zz',
    'after=',
    'after=x',
    'after=1.0',
    'after=9223372036854775808',
    'after=1&after=2',
    'tag=a&tag=a',
    'tag=%00',
    'tag=%ff',
  ].map((query) =>
    refused(40005, `the query ${query}`, 'listPlants', get(`/plants?${query}`), {
      body: /The query parameter (limit|after|tag) must be/,
    }),
  ),
]

const conditions: Scenario[] = [
  answered(
    'a state that the client has',
    'getPlant',
    get('/plants/1', { ...authorized, 'If-None-Match': `"x", ${tagOf[1]}` }),
    { status: 304, body: '', headers: { etag: /^"/ } },
  ),
  answered(
    'a state that the client has, as a weak tag',
    'getPlant',
    get('/plants/1', { ...authorized, 'If-None-Match': `W/${tagOf[1]}` }),
    { status: 304 },
  ),
  answered('any state', 'getPlant', get('/plants/1', { ...authorized, 'If-None-Match': '*' }), {
    status: 304,
  }),
  answered(
    'another state',
    'getPlant',
    get('/plants/1', { ...authorized, 'If-None-Match': '"1", , "2"' }),
  ),
  answered(
    'the state that is asked for',
    'getPlant',
    get('/plants/1', { ...authorized, 'If-Match': tagOf[1] }),
  ),
  refused(
    41200,
    'a state that is no more',
    'getPlant',
    get('/plants/1', { ...authorized, 'If-Match': '"1"' }),
  ),
  refused(
    40401,
    'an absent plant, before its state',
    'getPlant',
    get('/plants/404', { ...authorized, 'If-Match': '*' }),
  ),
  ...['', '"a', 'a', '"a" "b"', ',', '*, "a"', 'w/"a"', '"a"x'].map((tags) =>
    refused(
      40005,
      `the entity tags ${tags}`,
      'getPlant',
      get('/plants/1', { ...authorized, 'If-None-Match': tags }),
      { body: /The header If-None-Match must be/ },
    ),
  ),
]

const replaces: Scenario[] = [
  answered('a plant is replaced', 'replacePlant', put('/plants/51', rose), {
    body: '{"id":51,"name":"Rose","tag":"garden"}',
    headers: { etag: /^"/ },
  }),
  answered('a plant is created', 'replacePlant', put('/plants/70', rose), {
    status: 201,
    body: '{"id":70,"name":"Rose","tag":"garden"}',
    headers: { etag: /^"/, location: '/plants/70' },
  }),
  answered(
    'the id of the path in the body',
    'replacePlant',
    put('/plants/51', '{"id":5.1e1,"name":"Rose"}'),
    { body: '{"id":51,"name":"Rose"}' },
  ),
  answered(
    'in the state that the client has',
    'replacePlant',
    put('/plants/50', rose, { 'If-Match': `"1", ${tagOf[50]}` }),
  ),
  answered(
    'only if it is not there',
    'replacePlant',
    put('/plants/71', rose, { 'If-None-Match': '*' }),
    { status: 201 },
  ),
  refused(
    41200,
    'there, though it must not be',
    'replacePlant',
    put('/plants/51', rose, { 'If-None-Match': '*' }),
  ),
  refused(
    41200,
    'not there, though it must be',
    'replacePlant',
    put('/plants/404', rose, { 'If-Match': '*' }),
  ),
  refused(
    41200,
    'in another state',
    'replacePlant',
    put('/plants/51', rose, { 'If-Match': '"1"' }),
  ),
  refused(
    41200,
    'a weak tag of the very state',
    'replacePlant',
    put('/plants/52', rose, { 'If-Match': `W/${tagOf[52]}` }),
  ),
  refused(
    40003,
    'another id in the body',
    'replacePlant',
    put('/plants/51', '{"id":52,"name":"Rose"}'),
  ),
  refused(
    40003,
    'an id in the body that is none',
    'replacePlant',
    put('/plants/51', '{"id":"51","name":"Rose"}'),
  ),
  refused(40003, 'no name', 'replacePlant', put('/plants/51', '{}')),
  refused(40004, 'no id in the path', 'replacePlant', put('/plants/x', rose)),
  refused(
    40005,
    'no list of entity tags',
    'replacePlant',
    put('/plants/51', 'no JSON', { 'If-Match': '""x' }),
  ),
  refused(40001, 'no JSON', 'replacePlant', put('/plants/51', '{')),
  refused(40002, 'no body', 'replacePlant', put('/plants/51', '')),
  refused(
    41300,
    'too large a body',
    'replacePlant',
    put('/plants/51', `{"name":"${'x'.repeat(1024 * 1024)}"}`),
  ),
  refused(
    41500,
    'no JSON in its media type',
    'replacePlant',
    put('/plants/51', rose, { 'Content-Type': 'text/plain' }),
  ),
]

const deletes: Scenario[] = [
  ...[
    { 'Content-Type': 'application/json' },
    { 'Content-Type': ';;' },
    { 'Content-Length': '2' },
    { 'Content-Length': '2', 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' },
  ].map((headers) =>
    refused(40401, `an absent plant, with ${JSON.stringify(headers)}`, 'deletePlant', {
      ...del('/plants/404', headers),
      ...('Content-Length' in headers && { body: '{x' }),
    }),
  ),
  answered('a plant is removed', 'deletePlant', del('/plants/53'), { status: 204, body: '' }),
  answered(
    'in the state that the client has, with a media type and no body',
    'deletePlant',
    del('/plants/52', { 'If-Match': tagOf[52], 'Content-Type': 'text/plain' }),
    { status: 204 },
  ),
  refused(
    40401,
    'an absent plant, before its state',
    'deletePlant',
    del('/plants/404', { 'If-Match': '"1"' }),
  ),
  refused(41200, 'in another state', 'deletePlant', del('/plants/51', { 'If-Match': '"1"' })),
  refused(40004, 'no id in the path', 'deletePlant', del('/plants/x')),
  refused(
    40005,
    'an empty list of entity tags',
    'deletePlant',
    del('/plants/51', { 'If-Match': ' ' }),
  ),
]

const keys: Scenario[] = [
  answered(
    'a create with a key',
    'createPlant',
    post('{"id":61,"name":"Key"}', { 'Idempotency-Key': 'new-key' }),
    { body: '{"name":"Key"}', headers: { 'idempotency-replayed': '' } },
  ),
  answered(
    'the same once more, written otherwise',
    'createPlant',
    post('{ "name":"\\u004bey", "id":6.0e1 }', { 'Idempotency-Key': 'used-key' }),
    {
      body: '{"name":"Key"}',
      headers: {
        'idempotency-replayed': 'true',
        location: '/plants/60',
        etag: /^"/,
      },
    },
  ),
  refused(
    42200,
    'the key with another plant',
    'createPlant',
    post('{"id":62,"name":"Key"}', { 'Idempotency-Key': 'used-key' }),
  ),
  refused(
    42200,
    'the key with a tag more',
    'createPlant',
    post('{"id":60,"name":"Key","tag":""}', { 'Idempotency-Key': 'used-key' }),
  ),
  ...['', ' ', 'a b', 'x'.repeat(256), 'é'].map((key) =>
    refused(
      40005,
      `the key "${key.slice(0, 10)}"`,
      'createPlant',
      post(fern, { 'Idempotency-Key': key }),
    ),
  ),
  refused(40005, 'two keys', 'createPlant', post(fern, { 'Idempotency-Key': ['a', 'a'] })),
]

/** A request of each operation that would succeed. */
const everyOperation: [OperationName, Request, Scope][] = [
  ['createPlant', post(fern), 'plants:write'],
  ['listPlants', get('/plants'), 'plants:read'],
  ['getPlant', get('/plants/1'), 'plants:read'],
  ['replacePlant', put('/plants/1', rose), 'plants:write'],
  ['deletePlant', del('/plants/1'), 'plants:write'],
]

const credentials: Scenario[] = [
  ...['Basic dXNlcjpwYXNz', 'Bearer', 'Bearer ', 'bearer', 'Token x', 'Bearerx y', ''].map(
    (Authorization) =>
      refused(
        40100,
        `the credentials "${Authorization}"`,
        'getPlant',
        get('/plants/1', { Authorization }),
        {
          headers: { 'www-authenticate': challenge },
        },
      ),
  ),
  refused(40100, 'no credentials', 'createPlant', post(fern, { Authorization: [] }), {
    headers: { 'www-authenticate': challenge },
  }),
  refused(40100, 'a token in the query or in a cookie', 'getPlant', {
    path: `/plants/1?access_token=${authorized.Authorization.slice(7)}`,
    headers: { Cookie: `access_token=${authorized.Authorization.slice(7)}` },
  }),
  ...[
    'Bearer plst_000000000000000000000000000000000000',
    'Bearer x',
    'Bearer a b',
    'BEARER plst_',
    `Bearer ${'x'.repeat(5000)}`,
  ].map((Authorization) =>
    refused(
      40101,
      `the credentials "${Authorization.slice(0, 30)}"`,
      'getPlant',
      get('/plants/1', { Authorization }),
      {
        headers: { 'www-authenticate': `${challenge}, error="invalid_token"` },
      },
    ),
  ),
  refused(
    40102,
    'a token that has expired',
    'getPlant',
    get('/plants/1', { Authorization: `Bearer ${expiredToken}` }),
    {
      headers: { 'www-authenticate': `${challenge}, error="invalid_token"` },
    },
  ),
  refused(
    40300,
    'a create with a token that only reads',
    'createPlant',
    post('no JSON', { Authorization: `Bearer ${readerToken}` }),
    {
      headers: {
        'www-authenticate': `${challenge}, error="insufficient_scope", scope="plants:write"`,
      },
    },
  ),
  refused(
    40300,
    'a get with a token that only writes',
    'getPlant',
    get('/plants/no-id', { Authorization: `Bearer ${writerToken}` }),
    {
      headers: {
        'www-authenticate': `${challenge}, error="insufficient_scope", scope="plants:read"`,
      },
    },
  ),
  ...everyOperation.flatMap(([of, request, scope]) => {
    const other = scope === 'plants:read' ? writerToken : readerToken
    return [
      refused(40100, `${of} without credentials`, of, { ...request, headers: {} }),
      refused(
        40300,
        `${of} without its scope`,
        of,
        { ...request, headers: { Authorization: `Bearer ${other}` } },
        {
          headers: {
            'www-authenticate': `${challenge}, error="insufficient_scope", scope="${scope}"`,
          },
        },
      ),
    ]
  }),
  answered(
    'a get with a token that only reads',
    'getPlant',
    get('/plants/1', { Authorization: `Bearer ${readerToken}` }),
  ),
  answered(
    'the name of the scheme in any case',
    'getPlant',
    get('/plants/1', { Authorization: authorized.Authorization.replace('Bearer', 'bEARER ') }),
  ),
]

const paths: Scenario[] = [
  refused(40400, 'a path that only looks like ours', undefined, {
    method: 'POST',
    path: '/openapiXjson',
  }),
  refused(40500, 'a method on a path that is percent-encoded', undefined, {
    method: 'DELETE',
    path: '/%70lants',
  }),
  answered(
    'OPTIONS on a path that is percent-encoded',
    undefined,
    { method: 'OPTIONS', path: '/%70lants/1' },
    { status: 204, headers: { allow: 'DELETE, GET, HEAD, OPTIONS, PUT' } },
  ),
  ...[
    '/nothing',
    '/plants/',
    '//plants/1',
    '/Plants/1',
    '/plants/1/2',
    '/plants%2F1',
    '/plants;x=1/1',
  ].map((path) => refused(40400, `the path ${path}`, undefined, get(path, {}))),
  ...['PUT', 'DELETE', 'PATCH', 'TRACE', 'QUERY', 'PROPFIND'].map((method) =>
    refused(
      40500,
      `${method} on /plants`,
      undefined,
      { method, path: '/plants', body: 'no JSON' },
      { headers: { allow: 'GET, HEAD, OPTIONS, POST' } },
    ),
  ),
  refused(
    40500,
    'POST on a plant, before the token is asked for',
    undefined,
    { method: 'POST', path: '/plants/1', body: fern },
    {
      headers: { allow: 'DELETE, GET, HEAD, OPTIONS, PUT' },
    },
  ),
  answered(
    'OPTIONS: what the path allows',
    undefined,
    { method: 'OPTIONS', path: '/plants?x=y' },
    { status: 204, headers: { allow: 'GET, HEAD, OPTIONS, POST' } },
  ),
  answered(
    'OPTIONS: what the server allows',
    undefined,
    { method: 'OPTIONS', path: '*' },
    { status: 204, headers: { allow: 'DELETE, GET, HEAD, OPTIONS, POST, PUT' } },
  ),
]

const protocol: Scenario[] = [
  refused(
    40000,
    'chunks in another encoding',
    undefined,
    inChunks('16\r\n{"id":7,"name":"Fern"}\r\n0\r\n\r\n', 'gzip, chunked'),
  ),
  refused(
    40000,
    'chunks in HTTP/1.0',
    undefined,
    Buffer.from(
      inChunks('16\r\n{"id":7,"name":"Fern"}\r\n0\r\n\r\n')
        .toString()
        .replace('HTTP/1.1', 'HTTP/1.0'),
    ),
  ),
  refused(40000, 'a target in absolute form with two Hosts', undefined, {
    path: 'http://a/healthz',
    headers: { Host: ['b', 'c'] },
  }),
  refused(
    40000,
    'a target in absolute form without a Host',
    undefined,
    'GET http://a/healthz HTTP/1.1\r\n\r\n',
  ),
  refused(40000, 'a target in absolute form with a wrong host', undefined, {
    path: 'http://a b/healthz',
  }),
  refused(41400, 'a target in absolute form that is too long', undefined, {
    path: `http://${'a'.repeat(9000)}/healthz`,
  }),
  refused(
    50500,
    'a broken escape over HTTP/2.0',
    undefined,
    'GET /plants/%zz HTTP/2.0\r\nHost: a\r\n\r\n',
  ),
  refused(40000, 'a request line that is none', undefined, 'HELLO\r\n\r\n'),
  refused(
    40000,
    'a header that is none',
    undefined,
    'GET / HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n',
  ),
  refused(40000, 'a method that does not exist', undefined, 'PLANT / HTTP/1.1\r\nHost: a\r\n\r\n'),
  refused(40000, 'two Hosts', undefined, get('/healthz', { Host: ['a', 'b'] })),
  refused(40000, 'a Host with a path', undefined, get('/healthz', { Host: 'a/b' })),
  refused(40000, 'an empty Host', undefined, get('/healthz', { Host: '' })),
  refused(
    40000,
    'two media types',
    undefined,
    post(fern, { 'Content-Type': ['application/json', 'application/json'] }),
  ),
  refused(
    40000,
    'two Authorizations',
    undefined,
    get('/plants/1', { Authorization: [authorized.Authorization, authorized.Authorization] }),
    {
      headers: { 'www-authenticate': `${challenge}, error="invalid_request"` },
    },
  ),
  refused(40000, 'two lengths', undefined, post(fern, { 'Content-Length': ['22', '23'] })),
  refused(
    40000,
    'a length and chunks',
    undefined,
    post(fern, { 'Content-Length': '22', 'Transfer-Encoding': 'chunked' }),
  ),
  refused(
    40000,
    'a transfer encoding other than chunked',
    undefined,
    post(fern, { 'Transfer-Encoding': 'gzip, chunked' }),
  ),
  refused(40000, 'a broken chunk', undefined, inChunks('zz\r\n')),
  refused(40000, 'a URL with a broken escape', undefined, get('/plants/%zz')),
  refused(40000, 'a URL with a fragment', undefined, get('/plants/1#x')),
  refused(40000, 'a URL with bytes beyond ASCII', undefined, get('/plants/\u00e9')),
  refused(40000, 'a URL without a slash', undefined, 'GET plants HTTP/1.1\r\nHost: a\r\n\r\n'),
  refused(40000, 'a request to a proxy', undefined, 'CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n'),
  refused(50500, 'HTTP/3.0', undefined, 'GET / HTTP/3.0\r\nHost: a\r\n\r\n'),
  refused(50500, 'HTTP/0.9', undefined, 'GET /plants/1\r\n\r\n'),
  refused(
    40800,
    'a body that never ends',
    'createPlant',
    post('{"id":', { 'Content-Length': '100' }),
    impatient,
  ),
  answered('HTTP/1.0 without a Host', 'getHealth', 'GET /healthz HTTP/1.0\r\n\r\n'),
]

/** Every operation and every page meets the faults of the protocol. */
const targets = Object.entries({ ...operations, ...pages }) as [
  OperationName | PageName,
  { method?: string; path: string },
][]

const protocolEverywhere = targets.flatMap(([of, { method = 'GET', path }]): Scenario[] => {
  const line = `${method} ${path.replace('{id}', '1')}`
  return [
    refused(40000, `no Host for ${of}`, of, `${line} HTTP/1.1\r\n\r\n`),
    refused(
      40800,
      `headers of ${of} that never end`,
      of,
      `${line} HTTP/1.1\r\nHost: a\r\n`,
      impatient,
    ),
    refused(
      41400,
      `a URL of ${of} that is too long`,
      of,
      `${line}?${'x'.repeat(8192)} HTTP/1.1\r\nHost: a\r\n\r\n`,
    ),
    refused(
      41700,
      `an unknown expectation of ${of}`,
      of,
      `${line} HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n`,
    ),
    refused(
      43100,
      `headers of ${of} that are too large`,
      of,
      `${line} HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(16_384)}\r\n\r\n`,
    ),
    refused(50500, `HTTP/2.0 for ${of}`, of, `${line} HTTP/2.0\r\nHost: a\r\n\r\n`),
  ]
})

const faults: Scenario[] = [
  refused(50300, 'a full queue on an unknown path', undefined, get('/nothing'), {
    fault: 'queue full',
    ...retryAfter,
  }),
  ...everyOperation.flatMap(([of, request]) => [
    refused(42900, `one request too many in ${of}`, of, request, {
      fault: 'rate limit',
      headers: {
        'retry-after': /^\d+$/,
        ratelimit: /^"token";r=0;t=\d+$/,
        'ratelimit-policy': '"token";q=1;w=3600',
      },
    }),
    refused(50300, `a full queue in ${of}`, of, request, { fault: 'queue full', ...retryAfter }),
    refused(50000, `a mistake of ours in ${of}`, of, request, {
      fault: 'bug',
      body: /^((?!the secret cause).)*$/,
    }),
  ]),
  ...everyOperation
    .filter(([, , scope]) => scope === 'plants:write')
    .flatMap(([of, request]) => [
      refused(50400, `a write that the disk did not confirm, in ${of}`, of, request, {
        fault: 'not confirmed',
      }),
      refused(50301, `a store that cannot be reached, in ${of}`, of, request, {
        fault: 'not reachable',
        ...retryAfter,
      }),
    ]),
  refused(
    50700,
    'a full disk, for a replace',
    'replacePlant',
    put('/plants/1', `{"name":"${'x'.repeat(100_000)}"}`),
    { fault: 'disk full' },
  ),
  refused(50700, 'a full disk', 'createPlant', post(`{"id":7,"name":"${'x'.repeat(100_000)}"}`), {
    fault: 'disk full',
  }),
  answered('a full disk, for a get', 'getPlant', get('/plants/1'), { fault: 'disk full' }),
  refused(50301, 'readiness without a store', 'getReadiness', get('/readyz', {}), {
    fault: 'no ping',
    ...retryAfter,
  }),
  refused(50000, 'a mistake of ours in readiness', 'getReadiness', get('/readyz', {}), {
    fault: 'bug',
    body: /^((?!the secret cause).)*$/,
  }),
  refused(50700, 'a full disk, for a delete', 'deletePlant', del('/plants/1'), {
    fault: 'always full',
  }),
  answered('health with a full queue', 'getHealth', get('/healthz', {}), { fault: 'queue full' }),
]

const withoutToken: Scenario[] = [
  answered('health', 'getHealth', get('/healthz', {}), { body: '{"status":"ok"}' }),
  answered('readiness', 'getReadiness', get('/readyz', {}), { body: '{"status":"ok"}' }),
  answered('the OpenAPI document', 'getOpenApi', get('/openapi.json', {}), {
    body: /^\{"openapi":"3\.1\.0".*"url":"http:\/\/plants\.test"/,
  }),
  answered('the docs', 'getDocs', get('/docs', {}), {
    body: /^<!doctype html>/,
    headers: { 'content-security-policy': /default-src 'none'/ },
  }),
]

export const scenarios: readonly Scenario[] = [
  ...creates,
  ...gets,
  ...lists,
  ...conditions,
  ...replaces,
  ...deletes,
  ...keys,
  ...credentials,
  ...paths,
  ...protocol,
  ...protocolEverywhere,
  ...faults,
  ...withoutToken,
]
