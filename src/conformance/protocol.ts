import { limits } from '../contract/limits.ts'
import { expect, require } from './expect.ts'
import { contract, type Promised } from './promised.ts'
import { type Call, get, json, newFern } from './server.ts'

/** A create that is refused before its body counts. */
const create = { method: 'POST', path: '/plants', headers: json, body: '{}' }
const health = { path: '/healthz', as: 'nobody' } as const

/** Requests that no server can make sense of. */
const malformed: readonly Call[] = [
  { ...health, headers: { 'bad header': 'x' } },
  { ...health, headers: { Host: ['a', 'b'] } },
  { ...health, headers: { Host: 'a/b' } },
  { path: '/plants/%zz' },
  { ...create, headers: { ...json, 'Content-Length': ['2', '3'] } },
  { ...create, headers: { ...json, 'Content-Length': '2', 'Transfer-Encoding': 'chunked' } },
  { ...create, headers: { ...json, 'Transfer-Encoding': 'chunked' }, body: 'zz\r\n' },
]

const faults: readonly Promised[] = [
  contract(90, 'A malformed request is 40000 with an Error, from whichever layer.', async (s) => {
    for (const call of malformed) await s.expect(call, { error: 40000 })
  }),
  contract(91, 'Two Content-Type fields are 40000.', async (s) => {
    const type = 'application/json'
    await s.expect({ ...create, headers: { 'Content-Type': [type, type] } }, { error: 40000 })
  }),
  contract(92, 'A URL of more than 8 KiB is 41400.', async (s) => {
    const path = `/plants?x=${'x'.repeat(limits.urlBytes)}`
    await s.expect({ path }, { error: 41400 })
  }),
  contract(93, 'Headers of more than 16 KiB are 43100.', async (s) => {
    const headers = { 'X-Long': 'x'.repeat(limits.headerBytes) }
    await s.expect({ path: '/plants', headers }, { error: 43100 })
  }),
  contract(94, 'An expectation other than 100-continue is 41700.', async (s) => {
    await s.expect({ path: '/plants', headers: { Expect: '200-ok' } }, { error: 41700 })
  }),
  contract(95, 'A version other than HTTP/1.0 and HTTP/1.1 is 50500.', async (s) => {
    await s.expect({ path: '/plants', version: 'HTTP/2.0' }, { error: 50500 })
  }),
  contract(96, 'An Upgrade that is not done is ignored.', async (s) => {
    const headers = { Connection: 'Upgrade, close', Upgrade: 'h2c' }
    await s.expect({ path: '/plants?limit=1', headers }, { status: 200 })
  }),
]

const sizes: readonly Promised[] = [
  contract(97, 'A body of 1 MiB is taken, a longer one is 41300.', async (s) => {
    const id = await s.newId()
    const body = newFern(id)
    expect(await s.post(id, `${body.padEnd(limits.bodyBytes + 1)}`), { error: 41300 })
    expect(await s.post(id, body.padEnd(limits.bodyBytes)), { status: 200 })
  }),
  contract(98, 'A body that comes in chunks is taken like any other.', async (s) => {
    const id = await s.newId()
    const [first, second] = [`{"id":${id},`, '"name":"Fern"}']
    const chunks = [first, second, ''].map((one) => `${one.length.toString(16)}\r\n${one}\r\n`)
    const headers = { ...json, 'Transfer-Encoding': 'chunked' }
    expect(await s.post(id, chunks.join(''), { headers }), { status: 200 })
  }),
]

const mediaTypes: readonly Promised[] = [
  contract(99, 'A body that is not application/json in UTF-8 is 41500.', async (s) => {
    for (const type of ['text/plain', 'application/json; charset=latin1', 'application/jsonx']) {
      const id = await s.newId()
      const headers = { 'Content-Type': type }
      expect(await s.post(id, newFern(id), { headers }), { error: 41500 })
    }
    const id = await s.newId()
    const body = newFern(id)
    await s.expect({ method: 'POST', path: '/plants', makes: [id], body }, { error: 41500 })
  }),
  contract(100, 'The media type is taken in any case, with charset=utf-8.', async (s) => {
    for (const type of ['APPLICATION/JSON', 'application/json;charset="UTF-8"']) {
      await s.create({}, { headers: { 'Content-Type': type } })
    }
  }),
  contract(101, 'A content encoding is 41500, but identity is none.', async (s) => {
    const id = await s.newId()
    const gzip = { headers: { 'Content-Encoding': 'gzip' } }
    expect(await s.post(id, newFern(id), gzip), { error: 41500 })
    await s.create({}, { headers: { 'Content-Encoding': 'identity' } })
  }),
]

/** Headers that HEAD repeats. Those of each connection and moment differ. */
const repeated = ['content-type', 'etag', 'link', 'allow', 'cache-control', 'www-authenticate']

const methods: readonly Promised[] = [
  contract(102, 'HEAD answers the status and the headers of GET, without a body.', async (s) => {
    const { id } = await s.create()
    const calls: Call[] = [
      get(id),
      { path: `/plants?after=${id - 1n}&limit=1` },
      { path: `/plants/${await s.newId()}` },
      { path: '/plants/x' },
      { path: '/no/such/path' },
      { path: '/plants', as: 'nobody' },
      { path: '/healthz', as: 'nobody' },
    ]
    for (const call of calls) {
      const full = await s.ask(call)
      const head = await s.expect({ ...call, method: 'HEAD' }, { status: full.status })
      require(head, head.body.length === 0, 'no body')
      for (const name of repeated) {
        expect(head, { headers: { [name]: full.headers.get(name) ?? null } })
      }
    }
  }),
  contract(103, 'OPTIONS answers 204 with Allow, without a token.', async (s) => {
    const call = { method: 'OPTIONS', path: '/plants', as: 'nobody' as const }
    const heard = await s.expect(call, { status: 204 })
    const allow = heard.headers.get('allow')?.split(/, */) ?? []
    const all = ['GET', 'HEAD', 'OPTIONS', 'POST']
    require(heard, all.every((one) => allow.includes(one)), `Allow: ${all}`)
  }),
  contract(104, 'Operations answer Cache-Control: private, no-cache.', async (s) => {
    const { id, heard } = await s.create()
    const headers = { 'Cache-Control': 'private, no-cache' }
    expect(heard, { headers })
    await s.expect(get(id), { headers })
    await s.expect({ path: '/plants?limit=1' }, { headers })
  }),
  contract(105, 'Every answer has X-Content-Type-Options: nosniff.', async (s) => {
    const { heard } = await s.create()
    const headers = { 'X-Content-Type-Options': 'nosniff' }
    expect(heard, { headers })
    const paths = [
      '/plants?limit=1',
      '/plants/x',
      '/no/such/path',
      '/healthz',
      '/openapi.json',
      '/',
    ]
    for (const path of paths) await s.expect({ path }, { headers })
    await s.expect({ path: '/plants', as: 'nobody' }, { headers })
    await s.expect({ ...health, headers: { Host: ['a', 'b'] } }, { headers })
  }),
]

/** HTTP itself: its faults, sizes, media types and methods. */
export const protocol: readonly Promised[] = [...faults, ...sizes, ...mediaTypes, ...methods]
