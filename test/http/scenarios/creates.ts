import { authorized } from '../../support/service.ts'
import {
  answered,
  answeredAll,
  fern,
  get,
  post,
  postChunks,
  refused,
  refusedAll,
  type Scenario,
  tagOf,
} from './scenario.ts'

/** Each byte as a chunk. */
const inBytes = (text: string) => `${[...text].map((byte) => `1\r\n${byte}\r\n`).join('')}0\r\n\r\n`

const longName = 'n'.repeat(900)
const stranger =
  '{"id":9,"name":"Fern","colour":["green",1.5,null,1e999],"__proto__":{"tag":"x"},"constructor":1}'
const other = '{"id":1,"name":"Other"}'

const accepted: Scenario[] = [
  answered('a create', post('{"id":7,"name":"Fern","tag":"shade"}'), {
    body: '{"name":"Fern","tag":"shade"}',
    headers: {
      location: '/plants/7',
      etag: /^"[0-9a-f]{1,16}"$/,
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'private, no-cache',
    },
  }),
  answered('a create without a tag', post('{"id":8,"name":"Fern"}'), { body: '{"name":"Fern"}' }),
  answered('a create with an empty name and tag', post('{"id":10,"name":"","tag":""}'), {
    body: '{"name":"","tag":""}',
  }),
  answered('a create with members that the shape does not name', post(stranger), {
    body: '{"name":"Fern"}',
  }),
  answered('a body in chunks', postChunks('a\r\n{"id":12,"\r\nd\r\nname":"Fern"}\r\n0\r\n\r\n'), {
    body: '{"name":"Fern"}',
  }),
  answered('a body in chunks of one byte', postChunks(inBytes(`{"id":20,"name":"${longName}"}`)), {
    body: `{"name":"${longName}"}`,
  }),
  ...answeredAll({
    'brackets in a string': post(`{"id":17,"name":"\\"${'['.repeat(40)}${'{'.repeat(40)}"}`),
    'the encoding identity': post('{"id":13,"name":"Fern"}', { 'Content-Encoding': 'Identity' }),
    'a body that is asked for': post('{"id":14,"name":"Fern"}', { Expect: '100-Continue' }),
  }),
  answered(
    'a URL in absolute form',
    { ...post('{"id":15,"name":"Fern"}'), path: 'http://other.test/plants' },
    { headers: { location: '/plants/15' } },
  ),
]

const bodies: Scenario[] = [
  refused(40900, 'a create with an id that is taken', post(other), { body: /id 1 exists/ }),
  ...refusedAll(40001, {
    'a create whose body is not JSON': post('{"id":7,'),
    'deep nesting after an escaped quote': post(`{"id":7,"name":"\\"","z":${'['.repeat(8_000)}`),
    'a duplicate member, once an array and once an object': post(
      '{"id":7,"name":"Fern","z":[],"z":{}}',
    ),
  }),
  ...refusedAll(40002, {
    'a create with an empty body': post(''),
    'a body of white space': post(' \r\n\t '),
    'neither a body nor a media type': { ...post(''), headers: authorized },
    'a body of white space without a media type': { ...post(' \n'), headers: authorized },
  }),
  refused(40003, 'a create without a name', post('{"id":7}'), {
    body: '{"error":40003,"message":"The member \\"name\\" is missing."}',
  }),
  refused(40003, 'an array instead of an object', post('[{"id":7,"name":"Fern"}]'), {
    body: /A JSON object is expected, but this is an array/,
  }),
  refused(
    41300,
    'a length that is too large, before the body arrives',
    post('', { 'Content-Length': '8193', Expect: '100-continue' }),
  ),
  refused(
    41300,
    'a body of the largest size in chunks of one byte',
    postChunks(inBytes(`{"id":21,"name":"${'x'.repeat(8_192 - 19)}"}`)),
    { body: /more than 1000 chunks/, headers: { connection: 'close' } },
  ),
  refused(40401, 'a get of a plant whose create was refused', get('/plants/21')),
  ...refusedAll(41500, {
    'a body without a media type': { ...post(fern), headers: authorized },
    'a large body without a media type': {
      ...post(''),
      headers: { ...authorized, 'Content-Length': '8193' },
    },
    'a content encoding': post(fern, { 'Content-Encoding': 'gzip' }),
  }),
]

const conditions: Scenario[] = [
  answered(
    'a create of a plant that must be absent',
    post('{"id":18,"name":"Fern"}', { 'If-None-Match': '*' }),
  ),
  ...refusedAll(41200, {
    'a create with a taken id of a plant that must be absent': post(other, {
      'If-None-Match': '*',
    }),
    'a create with a free id of a plant that must exist': post('{"id":22,"name":"Fern"}', {
      'If-Match': '*',
    }),
    'a create with a taken id and the tag of its plant in If-Match': post(other, {
      'If-Match': tagOf[1],
    }),
    'a create with a taken id and the tag of its plant': post(other, { 'If-None-Match': tagOf[1] }),
  }),
  refused(
    40900,
    'a create with a taken id and another tag',
    post(other, { 'If-None-Match': '"1"' }),
  ),
  answered(
    'a create with a free id and the tag of another plant',
    post('{"id":19,"name":"Fern"}', { 'If-None-Match': tagOf[1] }),
  ),
  answered(
    'a get of the plant that none of these creates replaced',
    get('/plants/1', { 'If-Match': tagOf[1] }),
    { body: '{"id":1,"name":"Monstera","tag":"indoor"}' },
  ),
  refused(40005, 'a create with a broken condition', post(fern, { 'If-Match': '"' })),
]

/** A create with an `Idempotency-Key`. */
const keyed = (key: string, body: string) => post(body, { 'Idempotency-Key': key })

const keys: Scenario[] = [
  answered('a create with a new key', keyed('new-key', '{"id":61,"name":"Key"}'), {
    body: '{"name":"Key"}',
    headers: { 'idempotency-replayed': '' },
  }),
  answered(
    'a used key with the same plant, written differently',
    keyed('used-key', '{ "name":"\\u004bey", "id":6.0e1 }'),
    {
      body: '{"name":"Key"}',
      headers: { 'idempotency-replayed': 'true', location: '/plants/60', etag: /^"/ },
    },
  ),
  ...refusedAll(42200, {
    'a used key with another id': keyed('used-key', '{"id":62,"name":"Key"}'),
    'a used key with one more tag': keyed('used-key', '{"id":60,"name":"Key","tag":""}'),
  }),
  ...['', ' ', 'a b', 'x'.repeat(256), 'é'].map((key) =>
    refused(40005, `the key "${key.slice(0, 10)}"`, keyed(key, fern)),
  ),
  refused(40005, 'two keys', post(fern, { 'Idempotency-Key': ['a', 'a'] })),
]

/** Creates: bodies, media types, conditions and idempotency keys. */
export const creates: Scenario[] = [...accepted, ...bodies, ...conditions, ...keys]
