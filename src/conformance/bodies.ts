import type { ErrorNumber } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import { expect } from './expect.ts'
import { contract, type Promised } from './promised.ts'
import { get, json, newFern, type Server } from './server.ts'

const smallest = -(2n ** 63n)
const largest = 2n ** 63n - 1n

/**
 * Sends creates that must be refused with this number. `*` stands for a new id and `@` for another
 * one: a server that is wrong about them stores no plant in the place of somebody else's.
 */
async function refuse(
  server: Server,
  error: ErrorNumber,
  bodies: readonly string[],
  encoding: 'utf8' | 'latin1' = 'utf8',
): Promise<void> {
  for (const body of bodies) {
    const makes = await server.newIds(2)
    const sent = Buffer.from(fill(body, makes), encoding)
    expect(await server.post(makes[0] as bigint, sent, { makes }), { error })
  }
}

const fill = (body: string, [id, other]: readonly bigint[]) =>
  body.replace('*', `${id}`).replace('@', `${other}`)

/** Sends creates with wrong ids, unless a server that took them could make one of these ids. */
async function refuseIds(s: Server, wrong: readonly string[], makes: readonly bigint[]) {
  for (const id of makes) if (!(await s.isFree(id))) return
  for (const id of wrong) {
    const body = `{"id":${id},"name":"${s.newText()}"}`
    const call = { method: 'POST', path: '/plants', headers: json, makes, body }
    await s.expect(call, { error: 40003 })
  }
}

/** Creates a plant from a body with a new id for `*`, and requires what a get then answers. */
async function store(server: Server, body: string, expected: object): Promise<void> {
  const makes = await server.newIds(2)
  const [id = 0n] = makes
  expect(await server.post(id, fill(body, makes), { makes }), { status: 200 })
  await server.expect(get(id), { status: 200, body: { id, ...expected } })
}

/** An id as JSON in another notation. */
const notations: readonly ((id: bigint) => string)[] = [
  (id) => `${id}.0`,
  (id) => `${id}0e-1`,
  (id) => `${`${id}`[0]}.${`${id}`.slice(1)}E+${`${id}`.length - 1}`,
]

const fern = { name: 'Fern' }

/** What a body may hold, and how it is kept. */
export const bodies: readonly Promised[] = [
  contract(1, 'The smallest and the largest int64 are ids, exact to the last digit.', async (s) => {
    for (const id of [smallest, largest]) {
      // A plant of somebody else at this id shows the same, and is left alone.
      if (await s.isFree(id)) await s.create({ id })
      const after = id === smallest ? [] : [`after=${id - 1n}`]
      const query = ['limit=1', ...after].join('&')
      await s.expect(get(id), { status: 200, body: new RegExp(`"id":${id}\\b`) })
      await s.expect({ path: `/plants?${query}` }, { body: new RegExp(`"id":${id}\\b`) })
    }
  }),
  contract(2, 'An id beyond 2^53 is exact in get, list and Location.', async (s) => {
    const { id, name, heard } = await s.create()
    expect(heard, { headers: { Location: new RegExp(`/plants/${id}$`) } })
    await s.expect(get(id), { body: { id, name } })
    await s.expect({ path: `/plants?after=${id - 1n}&limit=1` }, { body: [{ id, name }] })
  }),
  contract(3, 'A number whose value is an integer is an id, however written.', async (s) => {
    for (const write of notations) {
      const id = await s.newId()
      expect(await s.post(id, `{"id":${write(id)},"name":"Fern"}`), { status: 200 })
      await s.expect(get(id), { status: 200, body: { id, ...fern } })
    }
  }),
  contract(4, 'An id that is no integer or no number is refused with 40003.', async (s) => {
    const wrong = ['*.5', '"*"', '[*]', '{}'].map((id) => `{"id":${id},"name":"Fern"}`)
    await refuse(s, 40003, wrong)
    await refuseIds(s, ['true', 'null', '1.5', '1e-1', '1e-999999999'], [0n, 1n, 2n])
  }),
  contract(5, 'An id beyond int64 is refused with 40003: 2^63, -2^63-1, 1e999999999.', (s) => {
    const wrong = [`${largest + 1n}`, `${smallest - 1n}`, '1e999999999', '9223372036854775807.5']
    return refuseIds(s, wrong, [smallest, largest])
  }),
  contract(6, 'Members that the shape does not name are ignored.', (s) =>
    store(s, '{"id":*,"name":"Fern","water":{"weekly":[1,2]},"ID":@,"Name":null}', fern),
  ),
  contract(7, '__proto__ is a member that the shape does not name.', (s) =>
    store(s, '{"id":*,"__proto__":{"tag":"x"},"name":"Fern","constructor":1}', fern),
  ),
  contract(8, 'name and tag are kept byte for byte: not trimmed, not normalised.', (s) => {
    const texts = { name: ' e\u0301\u00e9 \u{1f335}\t\r\n\u2028\u0001"\\/ ', tag: '\ufeffÅ\u212b ' }
    return store(s, `{"id":*,${JSON.stringify(texts).slice(1)}`, texts)
  }),
  contract(9, 'name and tag may be empty.', (s) =>
    store(s, '{"id":*,"name":"","tag":""}', { name: '', tag: '' }),
  ),
  contract(10, 'A NUL in name or tag is refused with 40003.', (s) =>
    refuse(s, 40003, ['{"id":*,"name":"a\\u0000b"}', '{"id":*,"name":"a","tag":"\\u0000"}']),
  ),
  contract(11, 'A lone surrogate in name or tag is refused with 40003.', (s) =>
    refuse(s, 40003, ['{"id":*,"name":"\\ud83c"}', '{"id":*,"name":"a","tag":"\\udf35\\ud83c"}']),
  ),
  contract(12, 'tag: null is refused with 40003.', (s) =>
    refuse(s, 40003, ['{"id":*,"name":"Fern","tag":null}']),
  ),
  contract(13, 'A plant without a tag is answered without one, never null or "".', async (s) => {
    const { id, name, heard } = await s.create()
    expect(heard, { body: { name } })
    await s.expect(get(id), { body: { id, name } })
    await s.expect({ path: `/plants?after=${id - 1n}&limit=1` }, { body: [{ id, name }] })
  }),
  contract(14, 'What is not UTF-8 is refused with 40001.', (s) =>
    refuse(s, 40001, ['{"id":*,"name":"\xe9"}', '{"id":*,"name":"\xed\xa0\x80"}'], 'latin1'),
  ),
  contract(15, 'JSON of 32 levels is taken, of 33 refused with 40001.', async (s) => {
    const nest = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
    const depth = limits.jsonDepth
    await store(s, `{"id":*,"x":${nest(depth - 1)},"name":"Fern"}`, fern)
    await refuse(s, 40001, [`{"id":*,"x":${nest(depth)},"name":"Fern"}`])
  }),
  contract(16, 'A member twice with different values is refused with 40001.', (s) =>
    refuse(s, 40001, ['{"id":*,"name":"Fern","name":"Ficus"}', '{"id":*,"id":@,"name":"Fern"}']),
  ),
  contract(17, 'A blank body is refused with 40002, with or without a media type.', async (s) => {
    await refuse(s, 40002, ['', ' \r\n\t'])
    const call = { method: 'POST', path: '/plants', headers: { 'Content-Length': '0' } }
    await s.expect(call, { error: 40002 })
  }),
  contract(18, 'What is not JSON is refused with 40001.', (s) =>
    refuse(s, 40001, [
      '{"id":*,"name":"Fern"',
      '{"id":*,"name":"Fern",}',
      "{'id':*,'name':'Fern'}",
      '{"id":+*,"name":"Fern"}',
      '{"id":0*,"name":"Fern"}',
      '{"id":*,"name":"a\nb"}',
      '{"id":*,"name":"Fern"} x',
    ]),
  ),
  contract(19, 'JSON that is no object is refused with 40003.', (s) =>
    refuse(s, 40003, ['[]', '"Fern"', '7', 'null', '[{"id":*,"name":"Fern"}]']),
  ),
  contract(20, 'The message about a wrong shape names the member at fault.', async (s) => {
    const wrong = { id: '{"name":"Fern"}', name: '{"id":*}', tag: '{"id":*,"name":"","tag":[]}' }
    for (const [member, body] of Object.entries(wrong)) {
      const id = await s.newId()
      const heard = await s.post(id, body.replace('*', `${id}`))
      expect(heard, { error: 40003, body: new RegExp(`\\b${member}\\b`) })
    }
  }),
  contract(21, 'A refused create leaves nothing behind.', async (s) => {
    const id = await s.newId()
    const bad = [
      `{"id":${id},"name":7}`,
      `{"id":${id},"name":"Fern"`,
      `{"id":${id},"name":"\\ud800"}`,
    ]
    for (const body of bad) await s.post(id, body)
    await s.post(id, newFern(id), { headers: { 'Content-Type': 'text/plain' } })
    await s.post(id, newFern(id), { headers: { 'If-Match': '"x"' } })
    await s.expect(get(id), { error: 40401 })
  }),
  contract(22, 'A byte order mark is refused with 40001.', (s) =>
    refuse(s, 40001, ['\ufeff{"id":*,"name":"Fern"}']),
  ),
]
