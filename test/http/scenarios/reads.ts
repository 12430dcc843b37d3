import { operatorToken } from '../../support/service.ts'
import { answered, answeredAll, del, get, put, refused, type Scenario, tagOf } from './scenario.ts'

const withoutToken = new RegExp(`^(?!.*${operatorToken})`)

const monstera = '{"id":1,"name":"Monstera","tag":"indoor"}'
const cactus = '{"id":-5,"name":"Cactus"}'

const wrongIds = [
  '01 -0 1.0 1e3 +1 %201 1%20 abc -- --1 - %00 %D9%A3',
  `9223372036854775808 -9223372036854775809 ${'9'.repeat(200)}`,
].flatMap((ids) => ids.split(' '))

/** Queries of a list: values that are not allowed, and parameters that are there twice. */
const wrongQueries = [
  'limit=0 limit=-1 limit=1001 limit=1e2 limit=abc limit= limit limit=01 limit=%zz',
  'after= after=x after=1.0 after=9223372036854775808',
  `tag=%00 tag=%ff name=%00 name=%ff name=${'a'.repeat(1_001)}`,
  'order= order=DESC order=up',
  'limit=1&limit=1 after=1&after=2 tag=a&tag=a name=a&name=a order=asc&order=asc',
  `${'&'.repeat(99)}limit=0`,
].flatMap((queries) => queries.split(' '))

const gets: Scenario[] = [
  answered('a get', get('/plants/1'), {
    body: monstera,
    headers: { etag: /^"[0-9a-f]{1,16}"$/, 'content-length': '41' },
  }),
  answered('a get of a plant that has no tag', get('/plants/-5'), { body: cactus }),
  answered('an id that is percent-encoded', get('/plants/%31')),
  answered('the longest URL that is allowed', get(`/plants/1?${'x'.repeat(8182)}`)),
  refused(40401, 'a get of an absent plant', get('/plants/404'), {
    headers: { 'cache-control': 'private, no-cache' },
  }),
  ...wrongIds.map((id) => refused(40004, `the id ${id.slice(0, 20)}`, get(`/plants/${id}`))),
]

/** What a client may have, so that a get of plant 1 tells it nothing new. */
const knownTags = {
  'a state': `"x", ${tagOf[1]}`,
  'a state, as a weak tag': `W/${tagOf[1]}`,
  'any state': '*',
  '100 states, the current one last': `${'"1",'.repeat(99)}${tagOf[1]}`,
}

const wrongTags = [
  ...' | "a | a | "a" "b" | , | *, "a" | w/"a" | "a"x'.split(' | '),
  ...[`${'"1",'.repeat(100)}"1"`, `${','.repeat(100)}"1"`, ','.repeat(14_000)],
]

const conditions: Scenario[] = [
  ...Object.entries(knownTags).map(([what, tags]) =>
    answered(`a get by a client that has ${what}`, get('/plants/1', { 'If-None-Match': tags }), {
      status: 304,
      body: '',
      headers: { etag: /^"/ },
    }),
  ),
  ...answeredAll({
    'a get by a client that has other states': get('/plants/1', { 'If-None-Match': '"1", , "2"' }),
    'a get of the state that If-Match names': get('/plants/1', { 'If-Match': tagOf[1] }),
  }),
  refused(41200, 'a get of a former state', get('/plants/1', { 'If-Match': '"1"' })),
  refused(40401, 'a conditional get of an absent plant', get('/plants/404', { 'If-Match': '*' })),
  ...wrongTags.map((tags) =>
    refused(
      40005,
      `the entity tags ${tags.slice(0, 20)}`,
      get('/plants/1', { 'If-None-Match': tags }),
      { body: /The header If-None-Match must be/ },
    ),
  ),
]

/** Queries of lists, and for each the plants and the query of the next page, if there is one. */
const lists: [title: string, query: string, plants: string, next?: string][] = [
  ['a list that ends', 'after=9223372036854775000', ''],
  ['a list that continues', 'limit=2&after=-6', `${cactus},${monstera}`, 'limit=2&after=1'],
  ['a list of all plants with a tag', 'tag=indoor&limit=1000', monstera],
  ['a list of one plant with a tag', 'tag=indoor&limit=1', monstera],
  ['a list by a tag that no plant has', 'tag=no+such+tag', ''],
  ['a list after the last id', 'after=9223372036854775807', ''],
  ['a list in descending order', 'order=desc&limit=2&after=2', `${monstera},${cactus}`],
  [
    'a list in descending order that continues',
    'order=desc&limit=1&after=2',
    monstera,
    'limit=1&after=1&order=desc',
  ],
  ['a list before the first id', 'order=desc&after=-9223372036854775808', ''],
  ['a search in other letters', 'name=ACTU', cactus],
  [
    'a search that continues',
    'name=r&limit=1&after=49&order=asc',
    '{"id":50,"name":"Rose"}',
    'limit=1&after=50&name=r&order=asc',
  ],
  ['a search with a tag', 'name=onst&tag=indoor&order=desc&after=2', monstera],
  ['a search for an empty text', 'name=&after=-6&limit=1', cactus, 'limit=1&after=-5&name='],
  ['a search for the longest text', `name=${'%C3%A4'.repeat(1_000)}`, ''],
]

/** With it, the URL of a list has 8,187 characters, and that of its next page 8,213. */
const longTag = 'x'.repeat(8_166)
const longTagged = `{"name":"x","tag":"${longTag}"}`

const pages: Scenario[] = [
  ...lists.map(([title, query, plants, next]) =>
    answered(title, get(`/plants?${query}`), {
      body: `[${plants}]`,
      headers: { link: next === undefined ? '' : `</plants?${next}>; rel="next"` },
    }),
  ),
  ...['7000000000000000001', '7000000000000000002'].map((id) =>
    answered(`a plant ${id} whose tag nearly fills a URL`, put(`/plants/${id}`, longTagged), {
      status: 201,
    }),
  ),
  refused(
    40005,
    'a list whose next page would have a URL that is too long',
    get(`/plants?limit=1&tag=${longTag}`),
    { body: /the URL of the next page/ },
  ),
  answered('a list by the same tag that ends', get(`/plants?limit=2&tag=${longTag}`)),
  ...['7000000000000000001', '7000000000000000002'].map((id) =>
    answered(`a delete of the plant ${id}`, del(`/plants/${id}`), { status: 204 }),
  ),
  ...['*', '?', 'c.c', '[C]actus', '%', '_', '\\', '^C', '🌵', 'Cactus '].map((text) =>
    answered(`a search for ${text}`, get(`/plants?after=-6&name=${encodeURIComponent(text)}`), {
      body: '[]',
    }),
  ),
  answered(
    'a list with unknown parameters',
    get('/plants?colour=green&colour=red&limit=1000&%zz'),
    { body: /^\[\{"id":-5,/ },
  ),
  ...wrongQueries.map((query) =>
    refused(40005, `the query ${query.slice(0, 20)}`, get(`/plants?${query}`), {
      body: /The query parameter (limit|after|tag|name|order) (must be|is given twice|is not UTF-8)/,
    }),
  ),
  ...[
    get('/plants?limit=not-a-number'),
    get(`/plants?limit=${operatorToken}`),
    get(`/events?after=${operatorToken}`),
    get('/plants/1', { 'If-Match': operatorToken }),
    get('/plants/1', { 'If-None-Match': `Bearer ${operatorToken}` }),
  ].map((request, index) =>
    refused(40005, `a wrong value that is repeated only if it is no token, ${index}`, request, {
      body: index === 0 ? /from 1 to 1000, not \\"not-a-number\\"\./ : withoutToken,
    }),
  ),
  answered('100 parameters, the last one known', get(`/plants?${'a=1&'.repeat(99)}limit=1`), {
    body: /^\[\{[^}]*\}\]$/,
  }),
  ...['a=1&'.repeat(100), '&'.repeat(8_000)].map((query) =>
    refused(40005, `more than 100 parameters: ${query.slice(0, 8)}`, get(`/plants?${query}`), {
      body: /The query must have at most 100 parameters\./,
    }),
  ),
]

const exports: Scenario[] = [
  ...['text/csv', 'application/x-ndjson, */*;q=0.1', 'text/html', ';;;,q=', ''].map((Accept) =>
    answered(`a list for a client that accepts "${Accept}"`, get('/plants', { Accept }), {
      headers: { 'content-type': 'application/json; charset=utf-8', vary: '' },
    }),
  ),
  answered('an export as NDJSON', get('/plants.ndjson'), {
    headers: {
      'content-type': 'application/x-ndjson; charset=utf-8',
      'content-disposition': 'attachment; filename="plants.ndjson"',
      'content-encoding': '',
      vary: 'Accept-Encoding',
    },
  }),
  answered('an export as gzipped CSV', get('/plants.csv', { 'Accept-Encoding': 'gzip' }), {
    headers: {
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': 'attachment; filename="plants.csv"',
      'content-encoding': 'gzip',
    },
  }),
  ...(
    [
      ['gzip;q=0', ''],
      ['identity, gzip;q=0.5', ''],
      [`${'x,'.repeat(32)}gzip`, ''],
      [`gzip${';'.repeat(32)}q=0`, ''],
      [`gzip${';'.repeat(33)}q=0`, 'gzip'],
    ] as const
  ).map(([accepted, encoding]) =>
    answered(
      `an export to a client that accepts ${accepted}`,
      get('/plants.csv', { 'Accept-Encoding': accepted }),
      { headers: { 'content-encoding': encoding } },
    ),
  ),
  ...['delimiter=semicolon', 'delimiter=tab&spreadsheet=true', 'spreadsheet=false'].map((query) =>
    answered(`/plants.csv?${query}`, get(`/plants.csv?${query}`), {
      headers: { 'content-type': 'text/csv; charset=utf-8; header=present' },
    }),
  ),
  ...['spreadsheet=1', 'spreadsheet=', 'spreadsheet=true&spreadsheet=true', 'delimiter=pipe'].map(
    (query) =>
      refused(40005, `/plants.csv?${query}`, get(`/plants.csv?${query}`), {
        body: /(spreadsheet must be true or false|delimiter must be comma, semicolon or tab|twice)/,
      }),
  ),
  ...['/plants.ndjson', '/plants.csv'].flatMap((path) => [
    answered(`${path} with parameters`, get(`${path}?limit=2147483647&after=0&tag=indoor`)),
    ...['limit=0', 'limit=2147483648', 'limit=1&limit=1', 'after=x', 'tag=%00'].map((query) =>
      refused(40005, `${path}?${query}`, get(`${path}?${query}`), {
        body: /The query parameter (limit|after|tag) (must be|is given twice)/,
      }),
    ),
  ]),
]

/** Gets, lists and exports. */
export const reads: Scenario[] = [...gets, ...conditions, ...pages, ...exports]
