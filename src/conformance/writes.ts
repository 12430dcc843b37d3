import { expect, require } from './expect.ts'
import { contract, type Promised } from './promised.ts'
import { get, newFern, put, remove, type Server } from './server.ts'

const strongTag = /^"[^"]*"$/
const otherTag = '"no-such-tag"'

const tagOf = ({ headers }: { headers: ReadonlyMap<string, string> }) => headers.get('etag') ?? ''

const creates: readonly Promised[] = [
  contract(23, 'A create answers Location: /plants/{id}.', async (s) => {
    const { id, heard } = await s.create()
    expect(heard, { headers: { Location: new RegExp(`(^|[^/])/plants/${id}$`) } })
  }),
  contract(24, 'A create answers a strong ETag, the same as a get.', async (s) => {
    const { id, heard } = await s.create()
    expect(heard, { headers: { ETag: strongTag } })
    await s.expect(get(id), { status: 200, headers: { ETag: tagOf(heard) } })
  }),
  contract(25, 'A create answers exactly the name and the tag.', async (s) => {
    const { name, heard } = await s.create({ tag: 'indoor' })
    expect(heard, { body: { name, tag: 'indoor' } })
  }),
  contract(26, 'A taken id is refused with 40900, and the stored plant stays.', async (s) => {
    const { id, name, heard } = await s.create()
    expect(await s.post(id, `{"id":${id},"name":"another","tag":"x"}`), { error: 40900 })
    await s.expect(get(id), { body: { id, name }, headers: { ETag: tagOf(heard) } })
  }),
  contract(27, 'A create whose If-Match names anything is refused with 41200.', async (s) => {
    for (const tag of ['*', otherTag]) {
      const id = await s.newId()
      const headers = { 'If-Match': tag }
      expect(await s.post(id, newFern(id), { headers }), { error: 41200 })
    }
  }),
  contract(28, 'If-None-Match: * on a create is 41200 only if the id is taken.', async (s) => {
    const headers = { 'If-None-Match': '*' }
    const { id } = await s.create({}, { headers })
    expect(await s.post(id, newFern(id), { headers }), { error: 41200 })
  }),
]

/** Sends a create with an Idempotency-Key. */
function postKey(s: Server, key: string, id: bigint, body: string) {
  return s.post(id, body, { headers: { 'Idempotency-Key': key } })
}

const keys: readonly Promised[] = [
  contract(29, 'The same Idempotency-Key and body get the first answer again.', async (s) => {
    const id = await s.newId()
    const key = s.newText()
    const body = newFern(id)
    const first = await postKey(s, key, id, body)
    expect(first, { status: 200, headers: { 'Idempotency-Replayed': null } })
    expect(await postKey(s, key, id, body), {
      status: 200,
      body: { name: 'Fern' },
      headers: { 'Idempotency-Replayed': 'true', ETag: tagOf(first), Location: /./ },
    })
  }),
  contract(30, 'A body is the same when id, name and tag are, however written.', async (s) => {
    const id = await s.newId()
    const key = s.newText()
    expect(await postKey(s, key, id, newFern(id)), { status: 200 })
    const other = `{ "x": 1, "name": "\\u0046ern", "id": ${id}.0 }`
    const headers = { 'Idempotency-Replayed': 'true' }
    expect(await postKey(s, key, id, other), { status: 200, headers })
  }),
  contract(31, 'The same Idempotency-Key with another body is refused with 42200.', async (s) => {
    const [id = 0n, other = 0n] = await s.newIds(2)
    const key = s.newText()
    expect(await postKey(s, key, id, newFern(id)), { status: 200 })
    const tagged = `{"id":${id},"name":"Fern","tag":""}`
    expect(await postKey(s, key, id, tagged), { error: 42200 })
    expect(await postKey(s, key, other, newFern(other)), { error: 42200 })
    await s.expect(get(other), { error: 40401 })
  }),
  contract(32, 'A refused create leaves its Idempotency-Key free.', async (s) => {
    const { id: taken } = await s.create()
    const id = await s.newId()
    const key = s.newText()
    expect(await postKey(s, key, taken, newFern(taken)), { error: 40900 })
    const headers = { 'Idempotency-Replayed': null }
    expect(await postKey(s, key, id, newFern(id)), { status: 200, headers })
  }),
  contract(33, 'A replay after a delete repeats the answer and stores nothing.', async (s) => {
    const id = await s.newId()
    const key = s.newText()
    const body = newFern(id)
    expect(await postKey(s, key, id, body), { status: 200 })
    await s.expect(remove(id), { status: 204 })
    const headers = { 'Idempotency-Replayed': 'true' }
    expect(await postKey(s, key, id, body), { status: 200, body: { name: 'Fern' }, headers })
    await s.expect(get(id), { error: 40401 })
  }),
  contract(34, 'An Idempotency-Key has 1 to 255 visible ASCII characters (40005).', async (s) => {
    for (const key of ['', 'k'.repeat(256), 'two words']) {
      const id = await s.newId()
      expect(await postKey(s, key, id, newFern(id)), { error: 40005 })
    }
    const id = await s.newId()
    const key = s.newText().padEnd(255, '~')
    expect(await postKey(s, key, id, newFern(id)), { status: 200 })
  }),
]

const gets: readonly Promised[] = [
  contract(35, 'A get answers exactly id, name and tag, with a strong ETag.', async (s) => {
    const { id, name } = await s.create({ tag: 'indoor' })
    const headers = { ETag: strongTag, 'Content-Type': /^application\/json/ }
    await s.expect(get(id), { status: 200, body: { id, name, tag: 'indoor' }, headers })
  }),
  contract(36, 'If-None-Match with the ETag, weak or strong, or * answers 304.', async (s) => {
    const { id, heard } = await s.create()
    const tag = tagOf(heard)
    for (const value of [tag, `W/${tag}`, `${otherTag}, ${tag}`, '*']) {
      const found = await s.ask(get(id, { 'If-None-Match': value }))
      expect(found, { status: 304, headers: { ETag: tag } })
      require(found, found.body.length === 0, 'no body')
    }
    await s.expect(get(id, { 'If-None-Match': otherTag }), { status: 200 })
  }),
  contract(37, 'A get of an absent plant answers 404 (40401).', async (s) => {
    await s.expect(get(await s.newId()), { error: 40401 })
  }),
  contract(38, 'In a path, anything but an int64 in plain digits is 40004.', async (s) => {
    const id = await s.newId()
    const wrong = ['01', '-0', '1'.repeat(200), 'x', `${id}.0`, `+${id}`, `0${id}`, `${2n ** 63n}`]
    for (const one of wrong) await s.expect({ path: `/plants/${one}` }, { error: 40004 })
  }),
]

const puts: readonly Promised[] = [
  contract(39, 'A put replaces a plant: 200, and a tag that was not sent is gone.', async (s) => {
    const { id } = await s.create({ tag: 'indoor' })
    const name = s.newText()
    await s.expect(put(id, `{"name":"${name}"}`), { status: 200, body: { id, name } })
    await s.expect(get(id), { body: { id, name } })
  }),
  contract(40, 'A put to a free id creates a plant: 201, Location and ETag.', async (s) => {
    const id = await s.newId()
    const name = s.newText()
    const headers = { Location: new RegExp(`/plants/${id}$`), ETag: strongTag }
    await s.expect(put(id, `{"name":"${name}"}`), { status: 201, headers, body: { id, name } })
    await s.expect(get(id), { status: 200, body: { id, name } })
  }),
  contract(41, 'The id in the body of a put must equal that of the path.', async (s) => {
    const [id = 0n, other = 0n] = await s.newIds(2)
    await s.expect({ ...put(id, newFern(other)), makes: [id, other] }, { error: 40003 })
    await s.expect(get(id), { error: 40401 })
    await s.expect(put(id, newFern(id)), { status: 201 })
  }),
  contract(42, 'Every put gives a new ETag, also with the same content.', async (s) => {
    const { id, name, heard } = await s.create()
    const second = await s.expect(put(id, `{"name":"${name}"}`), { headers: { ETag: strongTag } })
    const third = await s.ask(put(id, `{"name":"${name}"}`))
    const tags = new Set([tagOf(heard), tagOf(second), tagOf(third)])
    require(third, tags.size === 3, 'an ETag that was not there before')
    await s.expect(get(id), { headers: { ETag: tagOf(third) } })
  }),
  contract(43, 'If-Match: a put with the ETag succeeds; an old one is 41200.', async (s) => {
    const { id, heard } = await s.create()
    const headers = { 'If-Match': tagOf(heard) }
    await s.expect(put(id, '{"name":"first"}', headers), { status: 200 })
    await s.expect(put(id, '{"name":"second"}', headers), { error: 41200 })
    await s.expect(get(id), { body: { id, name: 'first' } })
  }),
  contract(44, 'A weak tag never matches in If-Match.', async (s) => {
    const { id, heard } = await s.create()
    await s.expect(put(id, '{"name":"x"}', { 'If-Match': `W/${tagOf(heard)}` }), { error: 41200 })
  }),
  contract(45, 'If-Match: * on a put to a free id is 41200.', async (s) => {
    const id = await s.newId()
    await s.expect(put(id, '{"name":"Fern"}', { 'If-Match': '*' }), { error: 41200 })
    await s.expect(get(id), { error: 40401 })
  }),
  contract(46, 'If-None-Match: * lets a put create, but not replace (41200).', async (s) => {
    const id = await s.newId()
    const headers = { 'If-None-Match': '*' }
    await s.expect(put(id, '{"name":"first"}', headers), { status: 201 })
    await s.expect(put(id, '{"name":"second"}', headers), { error: 41200 })
    await s.expect(get(id), { body: { id, name: 'first' } })
  }),
  contract(47, 'A broken list of entity tags is refused with 40005.', async (s) => {
    const { id } = await s.create()
    for (const value of ['x', '"x', '"a" "b"']) {
      await s.expect(put(id, '{"name":"Fern"}', { 'If-Match': value }), { error: 40005 })
    }
  }),
  contract(48, 'A put with Content-Range is refused with 40005.', async (s) => {
    const { id } = await s.create()
    const headers = { 'Content-Range': 'bytes 0-9/10' }
    await s.expect(put(id, '{"name":"Fern"}', headers), { error: 40005 })
  }),
]

const deletes: readonly Promised[] = [
  contract(49, 'A delete answers 204 without a body, and the plant is gone.', async (s) => {
    const { id } = await s.create()
    const heard = await s.expect(remove(id), { status: 204 })
    require(heard, heard.body.length === 0, 'no body')
    await s.expect(get(id), { error: 40401 })
  }),
  contract(50, 'A delete of an absent plant answers 404 (40401).', async (s) => {
    await s.expect(remove(await s.newId()), { error: 40401 })
  }),
  contract(51, 'A delete whose If-Match does not match is 41200; the plant stays.', async (s) => {
    const { id, name, heard } = await s.create()
    await s.expect(remove(id, { 'If-Match': otherTag }), { error: 41200 })
    await s.expect(get(id), { body: { id, name } })
    await s.expect(remove(id, { 'If-Match': tagOf(heard) }), { status: 204 })
  }),
  contract(52, 'A delete without a body ignores its media type.', async (s) => {
    const { id } = await s.create()
    await s.expect(remove(id, { 'Content-Type': 'text/plain' }), { status: 204 })
  }),
  contract(53, 'An ETag is never reused, not even after delete and create.', async (s) => {
    const { id, name, heard } = await s.create()
    await s.expect(remove(id), { status: 204 })
    const { heard: again } = await s.create({ id, name })
    require(again, tagOf(again) !== tagOf(heard), 'an ETag that was not there before')
  }),
]

/** Create, get, replace and delete of one plant. */
export const writes: readonly Promised[] = [...creates, ...keys, ...gets, ...puts, ...deletes]
