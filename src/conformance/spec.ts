import { broken, expect, expectAnyError, type Heard, require } from './expect.ts'
import { type Promised, spec } from './promised.ts'
import type { Call, Server } from './server.ts'

/** Requires that a create was refused, in whichever way; a 400 has an Error. */
function expectRefusal(heard: Heard): void {
  require(heard, heard.status >= 400, 'a status that says that the request failed')
  if (heard.status === 400) expectAnyError(heard)
}

/** Sends creates that must fail. `*` stands for a new id, and `#` for a text of this run. */
async function refuse(server: Server, bodies: readonly string[], more: Partial<Call> = {}) {
  for (const body of bodies) {
    const id = await server.newId()
    const sent = body.replace('*', `${id}`).replace('#', server.newText())
    expectRefusal(await server.post(id, sent, more))
  }
}

const valid = '{"id":*,"name":"Ficus"}'

/** Requires the shape Plant, without an id. */
function expectPlant(heard: Heard, expected: Record<string, unknown>): void {
  const plant = expect(heard, { status: 200, headers: { 'Content-Type': /^application\/json/i } })
  for (const [name, value] of Object.entries(expected)) {
    const found = (plant as Record<string, unknown> | null)?.[name]
    if (found !== value) throw broken(heard, `"${name}": ${JSON.stringify(value)}`)
  }
}

/** The promises of the specification. It shows one operation, so they need no other. */
export const specification: readonly Promised[] = [
  spec(1, 'A valid NewPlant with valid credentials is answered with 200.', async (server) => {
    await server.create({ tag: 'indoor' })
  }),
  spec(2, 'The body of a 200 is application/json.', async (server) => {
    const { heard } = await server.create({ tag: 'indoor' })
    expect(heard, { headers: { 'Content-Type': /^application\/json\s*(;|$)/i } })
  }),
  spec(3, 'The Plant of a 200 has the name and the tag that were sent.', async (server) => {
    const { heard, name } = await server.create({ tag: 'indoor' })
    expectPlant(heard, { name, tag: 'indoor' })
  }),
  spec(4, 'The Plant of a 200 has no id.', async (server) => {
    const { heard } = await server.create()
    const plant = expect(heard, { status: 200 }) as object
    require(heard, !('id' in plant), 'a Plant without an id')
  }),
  spec(5, 'The tag is optional: a plant without one is stored, and gets none.', async (server) => {
    const { heard, name } = await server.create()
    expectPlant(heard, { name, tag: undefined })
  }),
  spec(6, 'The id is an int64: large and negative ones are taken.', async (server) => {
    for (const base of [2n ** 63n - 2n ** 40n, -(2n ** 63n) + 2n ** 40n, -(2n ** 40n)]) {
      // Near the ends rather than at them, where somebody else may have a plant.
      const id = await server.newId((random) => base + (random % 2n ** 39n))
      expectPlant(await server.post(id, `{"id":${id},"name":"Ficus"}`), { name: 'Ficus' })
    }
  }),
  spec(7, 'id and name are required.', async (server) => {
    await refuse(server, ['{"name":"#"}', '{"id":*}', '{}'])
  }),
  spec(8, 'The id is an integer, name and tag are strings.', async (server) => {
    await refuse(server, [
      '{"id":"*","name":"Ficus"}',
      '{"id":*.5,"name":"Ficus"}',
      '{"id":*,"name":7}',
      '{"id":*,"name":null}',
      '{"id":*,"name":"Ficus","tag":7}',
    ])
  }),
  spec(9, 'A body is required, and it is JSON.', async (server) => {
    await refuse(server, ['', '{"id":*,"name":"Ficus"', 'id=*&name=Ficus'])
  }),
  spec(10, 'A 400 is application/json, an Error with error and message.', async (server) => {
    await refuse(server, ['{"id":', '{}', '[]', '{"id":*}'])
  }),
  spec(11, 'Authentication applies: without Authorization no plant is stored.', async (server) => {
    await refuse(server, [valid], { as: 'nobody' })
  }),
  spec(12, 'The scheme is bearer: no other one is accepted.', async (server) => {
    await refuse(server, [valid], { headers: { Authorization: 'Basic cGxhbnQ6c3RvcmU=' } })
  }),
  spec(13, 'A token that is not valid is not accepted.', async (server) => {
    const token = `plst_${'0'.repeat(36)}`
    await refuse(server, [valid], { headers: { Authorization: `Bearer ${token}` } })
  }),
]
