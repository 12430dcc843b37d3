import { expect, require, toValue } from './expect.ts'
import { contract, type Promised } from './promised.ts'
import { type Call, get, json, newFern, put, remove } from './server.ts'

const challenge = 'Bearer realm="plant-store"'
const operations: readonly Call[] = [
  { method: 'POST', path: '/plants', headers: json, body: '{"id":' },
  { path: '/plants' },
  { path: '/plants/7' },
  { path: '/plants.ndjson?limit=1' },
  { path: '/events?after=latest' },
  { path: '/metrics' },
]

const credentials: readonly Promised[] = [
  contract(70, 'No credentials: 40100, a challenge without an error code.', async (s) => {
    const expected = { error: 40100, headers: { 'WWW-Authenticate': challenge } } as const
    for (const call of operations) {
      // Without a journal there is no such path.
      const isOff = call.path.startsWith('/events') && (await s.ask(call)).status === 404
      if (!isOff) await s.expect({ ...call, as: 'nobody' }, expected)
    }
  }),
  contract(71, 'Another scheme, or Bearer with nothing after it, is 40100.', async (s) => {
    for (const Authorization of ['Basic cGxhbnQ6c3RvcmU=', 'Bearer', 'Bearer ', 'Token x', '']) {
      const headers = { 'WWW-Authenticate': challenge }
      await s.expect({ path: '/plants', headers: { Authorization } }, { error: 40100, headers })
    }
  }),
  contract(72, 'An unknown or malformed token: 40101, error="invalid_token".', async (s) => {
    for (const token of [`plst_${'0'.repeat(36)}`, 'x', 'a b', `${s.token}x`]) {
      const headers = { 'WWW-Authenticate': `${challenge}, error="invalid_token"` }
      const call = { path: '/plants', headers: { Authorization: `Bearer ${token}` } }
      await s.expect(call, { error: 40101, headers })
    }
  }),
  contract(73, 'The name of the scheme is taken in any case.', async (s) => {
    const headers = { Authorization: `bEARER ${s.token}` }
    await s.expect({ path: '/plants?limit=1', headers }, { status: 200 })
  }),
  contract(74, 'A token in a cookie does not count.', async (s) => {
    const headers = { Cookie: `access_token=${s.token}; token=${s.token}` }
    await s.expect({ path: '/plants', as: 'nobody', headers }, { error: 40100 })
  }),
  contract(75, 'Two Authorization headers: 40000, error="invalid_request".', async (s) => {
    const one = `Bearer ${s.token}`
    const headers = { 'WWW-Authenticate': /error="invalid_request"/ }
    const call = { path: '/plants', headers: { Authorization: [one, one] } }
    await s.expect(call, { error: 40000, headers })
  }),
  contract(76, 'Metrics are Prometheus text and need the scope metrics:read.', async (s) => {
    const heard = await s.ask({ path: '/metrics' })
    const scope = 'error="insufficient_scope", scope="metrics:read"'
    if (heard.status === 403) {
      expect(heard, { error: 40300, headers: { 'WWW-Authenticate': `${challenge}, ${scope}` } })
    } else expect(heard, { status: 200, headers: { 'Content-Type': /^text\/plain/ }, body: /^# / })
  }),
]

const order: readonly Promised[] = [
  contract(77, 'An unknown path is 40400, and /plants/ is one, before the token.', async (s) => {
    for (const path of ['/plants/', '/no/such/path', '/Plants', '/plants/1/2']) {
      await s.expect({ path }, { error: 40400 })
      await s.expect({ path, as: 'nobody' }, { error: 40400 })
    }
  }),
  contract(78, 'Other methods on a known path: 40500 with Allow, before the token.', async (s) => {
    const { id } = await s.create()
    const allowed = { [`/plants/${id}`]: ['DELETE', 'GET', 'PUT'], '/plants': ['GET', 'POST'] }
    for (const [path, methods] of Object.entries(allowed)) {
      const call = { method: 'PATCH', path, as: 'nobody' as const }
      const heard = await s.expect(call, { error: 40500 })
      const allow = heard.headers.get('allow')?.split(/, */) ?? []
      require(heard, !methods.some((one) => !allow.includes(one)), `Allow: ${methods}`)
    }
  }),
  contract(79, 'The token is judged before the path id, the query and the body.', async (s) => {
    const calls: Call[] = [{ path: '/plants/x' }, { path: '/plants?limit=0' }]
    const post = { method: 'POST', path: '/plants', headers: { 'Content-Type': 'text/plain' } }
    for (const call of [...calls, { ...post, body: '{' }]) {
      await s.expect({ ...call, as: 'nobody' }, { error: 40100 })
    }
  }),
  contract(80, 'Without a valid token, nobody learns whether a plant exists.', async (s) => {
    const { id } = await s.create()
    for (const one of [id, await s.newId()]) {
      await s.expect({ ...get(one), as: 'nobody' }, { error: 40100 })
      await s.expect({ ...remove(one), as: 'nobody' }, { error: 40100 })
    }
    await s.expect(get(id), { status: 200 })
  }),
  contract(81, 'The path id is judged before the media type, that before JSON.', async (s) => {
    const id = await s.newId()
    const call = put(id, '{', { 'Content-Type': 'text/plain' })
    await s.expect({ ...call, path: `/plants/0${id}` }, { error: 40004 })
    await s.expect(call, { error: 41500 })
  }),
  contract(82, 'JSON is judged before its shape, the shape before a taken id.', async (s) => {
    const { id } = await s.create()
    expect(await s.post(id, `{"id":"${id}"`), { error: 40001 })
    expect(await s.post(id, `{"id":${id}}`), { error: 40003 })
  }),
  contract(83, 'The shape is judged before preconditions, those before a taken id.', async (s) => {
    const { id } = await s.create()
    await s.expect(put(id, '{}', { 'If-Match': '"no-such-tag"' }), { error: 40003 })
    const none = { headers: { 'If-None-Match': '*' } }
    expect(await s.post(id, newFern(id), none), { error: 41200 })
  }),
  contract(84, 'An absent plant is 40401 before preconditions of get and delete.', async (s) => {
    const id = await s.newId()
    await s.expect(remove(id, { 'If-Match': '"no-such-tag"' }), { error: 40401 })
    await s.expect(get(id, { 'If-None-Match': '*' }), { error: 40401 })
  }),
]

const origin = 'https://plants.example'
const allowed = ['authorization', 'content-type', 'idempotency-key', 'if-match', 'if-none-match']
const exposed = ['link', 'location', 'etag', 'retry-after', 'www-authenticate']
const toNames = (list: string | undefined) => list?.toLowerCase().split(/, */) ?? []

const cors: readonly Promised[] = [
  contract(85, 'A preflight needs no token, and allows the headers of operations.', async (s) => {
    for (const method of ['POST', 'GET']) {
      const headers = { Origin: origin, 'Access-Control-Request-Method': method }
      const call = { method: 'OPTIONS', path: '/plants', as: 'nobody' as const, headers }
      const heard = await s.expect(call, {
        status: 204,
        headers: { 'Access-Control-Allow-Methods': new RegExp(`\\b${method}\\b`) },
      })
      const names = toNames(heard.headers.get('access-control-allow-headers'))
      require(heard, allowed.every((one) => names.includes(one)), `headers allowed: ${allowed}`)
    }
  }),
  contract(86, 'Pages of other origins may read answers and errors.', async (s) => {
    const { id } = await s.create()
    const calls: Call[] = [get(id), { path: '/plants/x' }, { path: '/plants', as: 'nobody' }]
    for (const call of calls) {
      const heard = await s.ask({ ...call, headers: { Origin: origin } })
      // The operator may have narrowed the origins.
      const isNarrow = toNames(heard.headers.get('vary')).includes('origin')
      if (isNarrow && !heard.headers.has('access-control-allow-origin')) continue
      expect(heard, { headers: { 'Access-Control-Allow-Origin': /^(\*|https:.*)$/ } })
      const names = toNames(heard.headers.get('access-control-expose-headers'))
      const all = [...exposed, 'idempotency-replayed']
      require(heard, all.every((one) => names.includes(one)), `headers exposed: ${all}`)
    }
  }),
]

const open: readonly Promised[] = [
  contract(87, '/healthz and /readyz answer 200 without a token, with no-store.', async (s) => {
    for (const path of ['/healthz', '/readyz']) {
      const headers = { 'Cache-Control': /no-store/ }
      await s.expect({ path, as: 'nobody' }, { status: 200, headers })
    }
  }),
  contract(88, '/openapi.json needs no token and describes this interface, 1.0.0.', async (s) => {
    const heard = await s.expect({ path: '/openapi.json', as: 'nobody' }, { status: 200 })
    const document = toValue(heard) as OpenApi | null
    require(heard, document?.info?.version === '1.0.0', 'version 1.0.0')
    for (const [path, method] of [
      ['/plants', 'post'],
      ['/plants', 'get'],
      ['/plants/{id}', 'delete'],
    ] as const) {
      const isThere = document?.paths?.[path]?.[method] !== undefined
      require(heard, isThere, `the operation ${method} ${path}`)
    }
  }),
  contract(89, '/ and /docs are pages that need no token and no other host.', async (s) => {
    for (const path of ['/', '/docs']) {
      const policy = /^(?!.*unsafe-inline)(?!.*unsafe-eval)(?!.*https?:).*default-src/
      const headers = { 'Content-Type': /^text\/html/, 'Content-Security-Policy': policy }
      await s.expect({ path, as: 'nobody' }, { status: 200, headers })
    }
  }),
]

interface OpenApi {
  readonly info?: { readonly version?: string }
  readonly paths?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

/** Credentials, the order of judgement, other origins, and what is open to all. */
export const access: readonly Promised[] = [...credentials, ...order, ...cors, ...open]
