import { answered, get, refused, refusedAll, type Scenario, visit } from './scenario.ts'

const foreign = '000000000000-1-0-0'
const last = 'ffffffffffff-zzzzzzzzzz-zzzzzz-zzzzzz'
const next = /^<\/events\?after=[A-Za-z0-9_-]{1,64}&limit=\d+>; rel="next"$/
const asStream = { Accept: 'text/event-stream' }

/** Pages of the journal. Streams have a suite of their own. */
export const events: Scenario[] = [
  answered('the oldest events', get('/events?limit=2'), {
    body: /^\[\{"position":"[\w-]+","type":"plant.created","at":"[^"]+Z","plant":\{"id":1,"name":"Monstera","tag":"indoor"\}\},\{[^[]*\}\]$/,
    headers: { link: next, vary: 'Accept', 'content-type': 'application/json; charset=utf-8' },
  }),
  answered('no events after the latest', get('/events?after=latest'), {
    body: '[]',
    headers: { link: next },
  }),
  ...[
    'text/html',
    'text/event-stream;q=0',
    'text/*;q=0.1, */*',
    'text/*, */*',
    'text/event-stream, application/json, */*',
    '',
  ].map((Accept) =>
    answered(`events for a client that accepts "${Accept}"`, get('/events?limit=1', { Accept }), {
      headers: { 'content-type': 'application/json; charset=utf-8' },
    }),
  ),
  answered(
    'a page for a client that has a Last-Event-ID, which is for streams',
    get('/events?limit=1', { 'Last-Event-ID': 'nonsense' }),
    { body: /Monstera/ },
  ),
  answered(
    'a stream for a client that names it and takes all else',
    { ...get('/events', { Accept: 'text/event-stream, */*' }), method: 'HEAD' },
    { headers: { 'content-type': 'text/event-stream' } },
  ),
  answered(
    'the headers of a stream',
    { ...get('/events?after=latest', asStream), method: 'HEAD' },
    {
      headers: {
        'content-type': 'text/event-stream',
        link: next,
        connection: 'close',
        'x-accel-buffering': 'no',
      },
    },
  ),
  answered(
    'the headers of a stream to a client of HTTP/1.0',
    'HEAD /events HTTP/1.0\r\nAuthorization: Bearer operator-token-of-the-tests\r\nAccept: text/event-stream\r\n\r\n',
    { headers: { 'content-type': 'text/event-stream' } },
  ),
  ...refusedAll(41000, {
    'a position of another store': get(`/events?after=${foreign}`),
    'the last position that could be': get(`/events?after=${last}`),
    'a stream after a position of another store': get(`/events?after=${foreign}`, asStream),
    'a stream that was begun in another store': get('/events?after=latest', {
      ...asStream,
      'Last-Event-ID': foreign,
    }),
  }),
  ...['nonsense', '', `${foreign}, ${foreign}`, `${foreign}-1`].map((id) =>
    refused(
      40005,
      `a stream after the id "${id}"`,
      get('/events', { ...asStream, 'Last-Event-ID': id }),
      { body: /The header Last-Event-ID must be a position/ },
    ),
  ),
  ...['limit=0', 'limit=1001', 'limit=1&limit=1', 'after=', 'after=1', 'after=oldest'].map(
    (query) => refused(40005, `the events ${query}`, get(`/events?${query}`)),
  ),
  refused(40005, 'a position of 8,000 characters', get(`/events?after=${'a'.repeat(8_000)}`)),
  refused(40005, 'a position twice', get(`/events?after=${foreign}&after=${foreign}`)),
  refused(41400, 'a position of 9,000 characters', get(`/events?after=${'a'.repeat(9_000)}`)),
  ...refusedAll(
    40400,
    {
      'events while the journal is off': get('/events'),
      'events without a token while the journal is off': visit('/events'),
      'a stream while the journal is off': get('/events', asStream),
    },
    { env: { JOURNAL_KEEP: 'off' } },
  ),
]
