import { broken, type Heard, require, toValue } from './expect.ts'
import { contract, type Promised } from './promised.ts'
import type { Fields, Server } from './server.ts'

/** Creates plants whose ids follow each other, with nothing between them. */
async function createRow(s: Server, fields: readonly Partial<Fields>[]) {
  const ids = await s.newIds(fields.length)
  const plants: Fields[] = []
  for (const [index, one] of fields.entries()) {
    const { heard: _, ...plant } = await s.create({ ...one, id: ids[index] as bigint })
    plants.push(plant)
  }
  return { plants, before: `after=${(ids[0] as bigint) - 1n}` }
}

/** The path and query of the next page, without the address that clients are told to use. */
export function toNext({ headers }: Heard): string | undefined {
  const link = headers.get('link') ?? ''
  return /<[^>]*(\/(?:plants|events)\?[^>]*)>; *rel="?next"?/.exec(link)?.[1]
}

/** All plants of a walk along `Link`. */
async function walk(s: Server, first: string): Promise<unknown[]> {
  const found: unknown[] = []
  let path: string | undefined = first
  for (let pages = 0; path !== undefined; pages++) {
    const heard: Heard = await s.expect({ path }, { status: 200 })
    if (pages > 10) throw broken(heard, 'a last page without Link')
    found.push(...(toValue(heard) as unknown[]))
    path = toNext(heard)
  }
  return found
}

const tagged = (tag: string, count: number) => Array.from({ length: count }, () => ({ tag }))

/** Lists of plants. */
export const lists: readonly Promised[] = [
  contract(54, 'A list is a bare array of plants, in ascending order of their ids.', async (s) => {
    const { plants, before } = await createRow(s, [{}, { tag: 'indoor' }, {}])
    await s.expect({ path: `/plants?${before}&limit=3` }, { status: 200, body: plants })
  }),
  contract(55, 'order=desc lists large ids first, and after takes those below.', async (s) => {
    const { plants } = await createRow(s, [{}, {}, {}])
    const path = `/plants?order=desc&limit=3&after=${(plants[2]?.id ?? 0n) + 1n}`
    await s.expect({ path }, { status: 200, body: plants.toReversed() })
  }),
  contract(56, 'A list has at most limit plants; Link leads on while more follow.', async (s) => {
    const { plants, before } = await createRow(s, [{}, {}, {}])
    const headers = { Link: /<[^>]*\/plants\?[^>]*>; *rel="?next"?/ }
    const path = `/plants?${before}&limit=2`
    const heard = await s.expect({ path }, { status: 200, headers, body: plants.slice(0, 2) })
    await s.expect({ path: toNext(heard) ?? path }, { body: /^\[\{/ })
  }),
  contract(57, 'A walk along Link has every plant once, and ends without a Link.', async (s) => {
    const tag = s.newText()
    const { plants, before } = await createRow(s, tagged(tag, 5))
    const found = await walk(s, `/plants?${before}&limit=2&tag=${tag}`)
    const all = { path: `/plants?${before}&tag=${tag}` }
    await s.expect(all, { body: found, headers: { Link: null } })
    await s.expect(all, { body: plants })
  }),
  contract(58, 'after lists what follows an id, whether or not a plant has it.', async (s) => {
    const { plants } = await createRow(s, [{}, {}])
    for (const after of [plants[0]?.id ?? 0n, (plants[0]?.id ?? 0n) + 1n]) {
      await s.expect({ path: `/plants?after=${after}&limit=1` }, { body: plants.slice(1) })
    }
  }),
  contract(59, 'tag finds exactly this tag: in this case, and not as a part.', async (s) => {
    const tag = s.newText()
    const other = [tag.toUpperCase(), `${tag}x`, ` ${tag}`].map((one) => ({ tag: one }))
    const { plants, before } = await createRow(s, [{ tag }, ...other, {}])
    await s.expect({ path: `/plants?${before}&tag=${tag}` }, { body: plants.slice(0, 1) })
  }),
  contract(60, 'tag= finds the empty tag, and not plants without one.', async (s) => {
    const { plants, before } = await createRow(s, [{}, { tag: '' }])
    await s.expect({ path: `/plants?${before}&tag=&limit=1` }, { body: plants.slice(1) })
  }),
  contract(61, 'name finds a text anywhere in the name, in upper or lower case.', async (s) => {
    const text = s.newText()
    const names = [`Big ${text.toUpperCase()}!`, 'Fern', `${text}`, `${text.slice(0, -1)}_`]
    const { plants, before } = await createRow(
      s,
      names.map((name) => ({ name })),
    )
    const path = `/plants?${before}&name=${text}&limit=2`
    await s.expect({ path }, { status: 200, body: [plants[0], plants[2]] })
  }),
  contract(62, 'In name, % and _ and * stand for themselves.', async (s) => {
    const tag = s.newText()
    const names = ['100% shade', '100 shade', 'a_b', 'axb', 'c*d', 'cd']
    const { plants, before } = await createRow(
      s,
      names.map((name) => ({ name, tag })),
    )
    for (const [index, text] of ['0%25+s', 'a_b', 'c*d'].entries()) {
      const path = `/plants?${before}&tag=${tag}&name=${text}`
      await s.expect({ path }, { body: [plants[index * 2]] })
    }
  }),
  contract(63, 'In a query, + is a space.', async (s) => {
    const tag = `${s.newText()} two words`
    const { plants, before } = await createRow(s, [{ tag }])
    const path = `/plants?${before}&tag=${tag.replaceAll(' ', '+')}`
    await s.expect({ path }, { body: plants })
  }),
  contract(64, 'limit is 1 to 1000, after an int64, order asc or desc, or 40005.', async (s) => {
    const wrong = ['limit=0', 'limit=1001', 'limit=x', 'limit=', 'limit=1.5', 'after=x', 'order=up']
    for (const query of [...wrong, `after=${2n ** 63n}`]) {
      await s.expect({ path: `/plants?${query}` }, { error: 40005 })
    }
  }),
  contract(65, 'limit=1 and limit=1000 are taken.', async (s) => {
    for (const limit of [1, 1000]) {
      await s.expect({ path: `/plants?limit=${limit}&after=${2n ** 63n - 2n}` }, { status: 200 })
    }
  }),
  contract(66, 'Without limit, a list has at most 100 plants.', async (s) => {
    const heard = await s.expect({ path: '/plants' }, { status: 200 })
    const plants = toValue(heard)
    require(heard, Array.isArray(plants) && plants.length <= 100, 'at most 100 plants')
  }),
  contract(67, 'A parameter that is known, given twice, is refused with 40005.', async (s) => {
    for (const query of ['limit=1&limit=1', 'tag=a&tag=b', 'after=1&after=1', 'name=a&name=a']) {
      await s.expect({ path: `/plants?${query}` }, { error: 40005 })
    }
  }),
  contract(68, 'A parameter that is not known is ignored.', async (s) => {
    const { plants, before } = await createRow(s, [{}])
    await s.expect({ path: `/plants?x=1&${before}&x=2&limit=1&Limit=0` }, { body: plants })
  }),
  contract(69, 'A list is JSON, whatever Accept says.', async (s) => {
    const headers = { 'Content-Type': /^application\/json/ }
    for (const Accept of ['text/csv', 'text/html', 'application/x-ndjson', '*/*']) {
      await s.expect({ path: '/plants?limit=1', headers: { Accept } }, { status: 200, headers })
    }
  }),
]
