import { toBytes } from '../../support/wire.ts'
import {
  answered,
  del,
  get,
  put,
  refused,
  refusedAll,
  rose,
  type Scenario,
  tagOf,
} from './scenario.ts'

const chunked = { 'Transfer-Encoding': 'chunked' }

/** A delete with these headers, and what follows them. */
function withRest(headers: Record<string, string>, rest: string, path = '/plants/51'): Buffer {
  return Buffer.concat([toBytes(del(path, headers)), Buffer.from(rest)])
}

const replaces: Scenario[] = [
  answered('a replace', put('/plants/51', rose), {
    body: '{"id":51,"name":"Rose","tag":"garden"}',
    headers: { etag: /^"/, location: '' },
  }),
  answered('a replace of an absent plant', put('/plants/70', rose), {
    status: 201,
    body: '{"id":70,"name":"Rose","tag":"garden"}',
    headers: { etag: /^"/, location: '/plants/70' },
  }),
  answered('a replace with the same id in the body', put('/plants/51', '{"id":5.1e1,"name":"R"}'), {
    body: '{"id":51,"name":"R"}',
  }),
  answered(
    'a replace of the state that the client has',
    put('/plants/50', rose, { 'If-Match': `"1", ${tagOf[50]}` }),
  ),
  answered(
    'a replace of an absent plant that must be absent',
    put('/plants/71', rose, { 'If-None-Match': '*' }),
    { status: 201 },
  ),
  ...refusedAll(41200, {
    'a replace of a plant that must be absent': put('/plants/51', rose, { 'If-None-Match': '*' }),
    'a replace of an absent plant that must exist': put('/plants/404', rose, { 'If-Match': '*' }),
    'a replace of a former state': put('/plants/51', rose, { 'If-Match': '"1"' }),
    'a replace by a weak tag of the current state': put('/plants/52', rose, {
      'If-Match': `W/${tagOf[52]}`,
    }),
  }),
  refused(
    43100,
    'a replace of a former state, with 1,000 headers before its condition',
    put('/plants/51', rose, { X: Array(1000).fill('y'), 'If-Match': '"1"' }),
  ),
  ...refusedAll(40003, {
    'another id in the body': put('/plants/51', '{"id":52,"name":"Rose"}'),
    'text for an id in the body': put('/plants/51', '{"id":"51","name":"Rose"}'),
    'a replace without a name': put('/plants/51', '{}'),
  }),
  ...refusedAll(40005, {
    'a replace of a part of a plant': put('/plants/51', rose, { 'Content-Range': 'bytes 0-1/2' }),
    'a broken list of entity tags, before a broken body': put('/plants/51', 'no JSON', {
      'If-Match': '""x',
    }),
  }),
  refused(40004, 'a replace at a wrong id', put('/plants/x', rose)),
  refused(40001, 'a replace whose body is not JSON', put('/plants/51', '{')),
  refused(40002, 'a replace with an empty body', put('/plants/51', '')),
  refused(
    41300,
    'a replace whose body is too large',
    put('/plants/51', `{"name":"${'x'.repeat(8_192)}"}`),
  ),
  refused(
    41500,
    'a replace in another media type',
    put('/plants/51', rose, { 'Content-Type': 'text/plain' }),
  ),
]

const deletes: Scenario[] = [
  answered('a delete', del('/plants/53'), { status: 204, body: '' }),
  answered(
    'a delete of the state that the client has, with a media type and no body',
    del('/plants/52', { 'If-Match': tagOf[52], 'Content-Type': 'text/plain' }),
    { status: 204 },
  ),
  ...[
    { 'If-Match': '"1"' },
    { 'Content-Type': 'application/json' },
    { 'Content-Type': ';;' },
    { 'Content-Length': '2' },
    { 'Content-Length': '2', Expect: '100-continue' },
    { 'Content-Length': '2', 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' },
  ].map((headers) =>
    refused(40401, `a delete of an absent plant with ${JSON.stringify(headers)}`, {
      ...del('/plants/404', headers),
      ...('Content-Length' in headers && { body: '{x' }),
    }),
  ),
  ...refusedAll(41300, {
    'a delete of an absent plant with a body that is too large': {
      ...del('/plants/404', { 'Content-Length': '8193' }),
      body: '',
    },
    'a delete with a body that is too large by its length': withRest(
      { 'Content-Length': '8193' },
      '',
    ),
    'a delete with a body that is too large by its chunks': withRest(
      chunked,
      `200000\r\n${'x'.repeat(0x2001)}`,
    ),
  }),
  refused(40000, 'a delete with a broken body', withRest(chunked, '1\r\nxZZ')),
  refused(40800, 'a delete whose body never ends', withRest({ 'Content-Length': '9' }, 'x'), {
    timeouts: { headersTimeoutMs: 200, requestTimeoutMs: 400 },
  }),
  answered('a get of the plant that none of these deleted', get('/plants/51')),
  ...[
    { what: 'a body in chunks', headers: chunked, rest: '1\r\nx\r\n0\r\n\r\n' },
    { what: 'an empty body', headers: { 'Content-Length': '0' }, rest: '' },
  ].flatMap(({ what, headers, rest }) => [
    answered(`a replace before ${what}`, put('/plants/72', rose), { status: 201 }),
    answered(`a delete with ${what}`, withRest(headers, rest, '/plants/72'), { status: 204 }),
  ]),
  ...refusedAll(41200, {
    'a delete of a plant that must be absent': del('/plants/51', { 'If-None-Match': '*' }),
    'a delete of a former state': del('/plants/51', { 'If-Match': '"1"' }),
  }),
  refused(40004, 'a delete at a wrong id', del('/plants/x')),
  refused(40005, 'a delete with no entity tag', del('/plants/51', { 'If-Match': ' ' })),
]

/** Replaces and deletes. */
export const changes: Scenario[] = [...replaces, ...deletes]
