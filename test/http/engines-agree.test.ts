import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { scale } from '../faults/lab/scale.ts'
import { engines } from '../support/engines.ts'
import { startService } from '../support/service.ts'
import { type Answer, call, type Request } from '../support/wire.ts'
import { type Condition, type RandomRequest, randomRequest, type State } from './random-requests.ts'

/** The number of requests. `FAULTS=long npm run test:faults` compares many more. */
const count = scale(250, 20_000)
const seed = Number(process.env.AGREE_SEED ?? 4)

/** Every status that random requests can get. */
const statuses = [200, 201, 204, 304, 400, 401, 404, 405, 409, 412, 422]

describe('SQLite and PostgreSQL', () => {
  it(`give the same answers to ${count} random requests, to the byte`, async (t) => {
    const sides = await Promise.all(
      engines.map(async (engine) => {
        const url = await engine.newUrl()
        return buildSide((await startService(url, { store: await engine.open(url) })).url)
      }),
    )
    const seen = new Map<number, number>()
    for (const request of fc.sample(randomRequest, { numRuns: count, seed })) {
      const [first, second] = await Promise.all(sides.map((send) => send(request)))
      assert.deepEqual(first, second, `with the seed ${seed}: ${JSON.stringify(request)}`)
      const status = first?.status ?? 0
      seen.set(status, (seen.get(status) ?? 0) + 1)
    }
    t.diagnostic(`answers by status: ${JSON.stringify(Object.fromEntries([...seen].sort()))}`)
    assert.deepEqual([...seen.keys()].sort(), statuses)
  })
})

/** An answer without what differs by design: date, request id, and the text of entity tags. */
interface Comparable {
  readonly status: number
  readonly headers: [name: string, value: string][]
  readonly body: string
}

/** One of the services under comparison. It remembers the entity tags that it has answered. */
function buildSide(url: string) {
  const tagsOf = new Map<string, string[]>()
  const numberOf = new Map<string, number>()

  function toTag(path: string, state: State): string {
    const tags = tagsOf.get(path) ?? []
    const found = { current: tags.at(-1), former: tags.at(-2), 'never seen': undefined }[state]
    return found ?? '"never-seen"'
  }

  function toHeaders(path: string, { header, value }: Condition): Record<string, string> {
    if (typeof value === 'string') return { [header]: value }
    const tags = value.map(({ state, prefix }) => prefix + toTag(path, state))
    return { [header]: tags.join(', ') }
  }

  function remember(path: string, { headers }: Answer): void {
    const tag = headers.get('etag')
    if (tag === undefined) return
    if (!numberOf.has(tag)) numberOf.set(tag, numberOf.size)
    // A create answers the address of its plant.
    const place = headers.get('location')?.replace(/^http:\/\/[^/]*/, '') ?? path
    const tags = tagsOf.get(place) ?? []
    if (!tags.includes(tag)) tagsOf.set(place, [...tags, tag])
  }

  /** Tags are equal on one side when they are equal on the other: each becomes its number. */
  function toComparable({ status, headers, body }: Answer): Comparable {
    const compared = [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id')
    return {
      status,
      headers: compared.map(([name, value]) =>
        name === 'etag' ? [name, `tag ${numberOf.get(value)}`] : [name, value],
      ),
      body,
    }
  }

  return async ({ condition, ...request }: RandomRequest): Promise<Comparable> => {
    const { path = '' } = request
    const headers = { ...request.headers, ...(condition && toHeaders(path, condition)) }
    const answer = await call(url, { ...request, headers } satisfies Request)
    remember(path, answer)
    return toComparable(answer)
  }
}
