import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { scale } from '../faults/scale.ts'
import { engines } from '../support/engines.ts'
import { authorized, json, startService } from '../support/service.ts'
import { type Answer, call, exchange, type Request, toBytes } from '../support/wire.ts'

/** How many requests are compared; `npm run test:agree` compares 20,000. */
const count = scale(300, 20_000)

/** Few ids, so that requests meet each other; the ends of int64 and beyond 2^53 among them. */
const id = fc.oneof(
  fc.integer({ min: -20, max: 20 }).map(String),
  fc.constantFrom(
    '9223372036854775807',
    '-9223372036854775808',
    '9007199254740993',
    '9223372036854775808',
    '1e2',
    '2.0',
    '1.5',
    '"1"',
    'null',
    '-0',
  ),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
)
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom(
    '',
    '\0',
    '\ud800',
    "'; DROP TABLE plants; --",
    '{"a","b"}',
    '\\',
    '"',
    'NULL',
    ' ',
    '\u{10ffff}',
    'é',
    'e\u0301',
  ),
)
const body = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(id, text, fc.option(text)).map(([key, name, tag]) => {
      const members = [`"id":${key}`, `"name":${JSON.stringify(name)}`]
      if (tag !== null) members.push(`"tag":${JSON.stringify(tag)}`)
      return `{${members.join(',')}}`
    }),
  },
  { weight: 1, arbitrary: fc.json() },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
)
const path = id.map((key) => `/plants/${encodeURIComponent(key)}`)
const request: fc.Arbitrary<Request> = fc.oneof(
  {
    weight: 5,
    arbitrary: body.map((content) => ({
      method: 'POST',
      path: '/plants',
      headers: json,
      body: Buffer.from(content),
    })),
  },
  { weight: 4, arbitrary: path.map((at) => ({ path: at, headers: authorized })) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom('HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PATCH'), path)
      .map(([method, at]) => ({ method, path: at, headers: authorized })),
  },
  { weight: 1, arbitrary: path.map((at) => ({ path: at, headers: {} })) },
)

const changing = ['date', 'x-request-id']

function toComparable({ status, headers, body: content }: Answer) {
  return {
    status,
    body: content,
    headers: [...headers].filter(([name]) => !changing.includes(name)),
  }
}

describe('SQLite and PostgreSQL', () => {
  it(`give the same answers to ${count} random requests, to the byte`, async () => {
    const services = await Promise.all(
      engines.map(async (engine) => {
        const url = await engine.newUrl()
        // Versions are random; here both engines draw the same ones.
        let version = 1n
        return startService(url, { store: await engine.open(url, { newVersion: () => version++ }) })
      }),
    )
    const statuses = new Map<number, number>()
    const requests = fc.sample(request, {
      numRuns: count,
      seed: Number(process.env.AGREE_SEED ?? 4),
    })
    for (const one of requests) {
      const hasNoBody = one.method === 'HEAD'
      const [first, second] = await Promise.all(
        services.map(
          async ({ url }) => (await exchange(url, toBytes(one), { hasNoBody }))[0] as Answer,
        ),
      )
      assert.deepEqual(
        toComparable(first as Answer),
        toComparable(second as Answer),
        JSON.stringify(one),
      )
      statuses.set(first?.status ?? 0, (statuses.get(first?.status ?? 0) ?? 0) + 1)
    }
    for (const status of [200, 400, 401, 404, 405, 409]) {
      assert.ok((statuses.get(status) ?? 0) > 0, `no answer was ${status}`)
    }
    for (const { url } of services) assert.equal((await call(url, { path: '/readyz' })).status, 200)
  })
})
