import { isDeepStrictEqual } from 'node:util'
import { broken, expect, type Heard, require, toJson, toText, toValue, Unseen } from './expect.ts'
import { toNext } from './lists.ts'
import { contract, type Promised } from './promised.ts'
import { put, remove, type Server } from './server.ts'
import type { Answer } from './wire.ts'

interface Event {
  readonly position: string
  readonly type: string
  readonly at: string
  readonly plant: { readonly id: bigint }
}

const stream = { Accept: 'text/event-stream' }

/** Where the journal ends now. */
async function findEnd(s: Server): Promise<string> {
  const heard = await s.ask({ path: '/events?after=latest' })
  if (heard.status === 404) {
    expect(heard, { error: 40400 })
    throw new Unseen('the server keeps no journal')
  }
  // Somebody may change a plant meanwhile, so it need not be empty.
  expect(heard, { status: 200, body: /^\[/ })
  const next = toNext(heard)
  if (next === undefined) throw broken(heard, 'Link: <…>; rel="next"')
  return next
}

/** The events after a position, of these plants: others may be changed at the same time. */
async function follow(s: Server, path: string, ids: readonly bigint[]) {
  const heard = await s.expect({ path: path.replace(/limit=\d+/, 'limit=1000') }, { status: 200 })
  const events = toValue(heard) as Event[]
  return { heard, events: events.filter(({ plant }) => ids.includes(plant?.id)) }
}

/** The first piece of a stream that has something in it. */
function readStream(s: Server, path: string, text: string, headers = {}): Promise<Heard> {
  const until = ({ body }: Answer) => body.toString().includes(text)
  return s.ask({ path, headers: { ...stream, ...headers }, until })
}

const toAfter = (path: string) => new URLSearchParams(path.split('?')[1]).get('after') ?? ''

/** The journal, as pages and as a stream. */
export const events: readonly Promised[] = [
  contract(118, 'Each change is an Event with exactly position, type, at and plant.', async (s) => {
    const start = await findEnd(s)
    const { id, name } = await s.create({ tag: 'indoor' })
    await s.expect(put(id, '{"name":"x"}'), { status: 200 })
    await s.expect(remove(id), { status: 204 })
    const { heard, events } = await follow(s, start, [id])
    const expected = [
      ['plant.created', { id, name, tag: 'indoor' }],
      ['plant.replaced', { id, name: 'x' }],
      ['plant.deleted', { id, name: 'x' }],
    ]
    for (const event of events) {
      const isExact = Object.keys(event).sort().join() === 'at,plant,position,type'
      require(heard, isExact, 'exactly position, type, at and plant')
      require(heard, /^[\w-]{1,64}$/.test(event.position), 'a position of 1 to 64 of A-Za-z0-9_-')
      const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(event.at)
      require(heard, isTime, 'at in RFC 3339, UTC, with milliseconds')
    }
    const found = events.map(({ type, plant }) => [type, plant])
    require(heard, isDeepStrictEqual(found, expected), `the changes ${toJson(expected)}`)
  }),
  contract(119, 'A refused, replayed or needless write leaves no entry.', async (s) => {
    const headers = { 'Idempotency-Key': s.newText() }
    const { id, name } = await s.create({}, { headers })
    const start = await findEnd(s)
    const body = `{"id":${id},"name":"${name}"}`
    expect(await s.post(id, body, { headers }), { status: 200 })
    expect(await s.post(id, body), { error: 40900 })
    const type = { 'Content-Type': 'application/x-ndjson' }
    const call = { method: 'POST', path: '/plants.ndjson', headers: type, body, makes: [id] }
    await s.expect(call, { status: 200 })
    const { heard, events } = await follow(s, start, [id])
    require(heard, events.length === 0, 'no event of this plant')
  }),
  contract(120, 'Link is always there, and leads to what comes next.', async (s) => {
    const start = await findEnd(s)
    const { id } = await s.create()
    const { heard, events } = await follow(s, start, [id])
    require(heard, events.length === 1, 'one event of this plant')
    const next = toNext(heard)
    if (next === undefined) throw broken(heard, 'Link: <…>; rel="next"')
    const later = await follow(s, next, [id])
    require(later.heard, later.events.length === 0, 'no event again')
  }),
  contract(121, 'A page has at most limit events.', async (s) => {
    const start = await findEnd(s)
    await s.create()
    await s.create()
    const heard = await s.expect({ path: start.replace(/limit=\d+/, 'limit=1') }, { status: 200 })
    require(heard, (toValue(heard) as unknown[]).length === 1, 'one event')
  }),
  contract(122, 'What is no position, and a wrong limit, are refused with 40005.', async (s) => {
    await findEnd(s)
    for (const query of ['after=nonsense', 'after=', 'limit=0', 'limit=1001', 'limit=1&limit=1']) {
      await s.expect({ path: `/events?${query}` }, { error: 40005 })
    }
  }),
  contract(123, 'A stream begins with an id: and a retry: of 1000 to 5000.', async (s) => {
    await findEnd(s)
    const heard = await readStream(s, '/events?after=latest', 'retry:')
    const headers = { 'Content-Type': /^text\/event-stream/, 'X-Accel-Buffering': 'no' }
    expect({ ...heard, isWhole: true }, { status: 200, headers, body: /^id: ?[\w-]{1,64}\n/ })
    const retry = Number(/^retry: ?(\d+)$/m.exec(toText(heard))?.[1])
    require(heard, retry >= 1000 && retry <= 5000, 'retry: 1000 to 5000')
  }),
  contract(124, 'A stream sends a change that is made while it is open.', async (s) => {
    await findEnd(s)
    const id = await s.newId()
    let creating: Promise<unknown> | undefined
    const until = ({ body }: Answer) => {
      const text = body.toString()
      if (/^id:/m.test(text)) creating ??= s.create({ id })
      return text.includes(`"id":${id}`) && text.endsWith('\n\n')
    }
    const heard = await s.ask({ path: '/events?after=latest', headers: stream, until })
    await creating
    const block = new RegExp(
      `^id: ?([\\w-]+)\nevent: ?plant\\.created\ndata: ?\\{.*"id":${id}\\b`,
      'm',
    )
    expect({ ...heard, isWhole: true }, { status: 200, body: block })
  }),
  contract(125, 'Last-Event-ID counts like after in a stream, and wins.', async (s) => {
    const start = await findEnd(s)
    const { id } = await s.create()
    const last = { 'Last-Event-ID': toAfter(start) }
    const heard = await readStream(s, '/events?after=latest', `"id":${id}`, last)
    expect({ ...heard, isWhole: true }, { status: 200, body: new RegExp(`"id":${id}\\b`) })
    const wrong = { ...stream, 'Last-Event-ID': 'nonsense' }
    await s.expect({ path: '/events', headers: wrong }, { error: 40005 })
  }),
]
