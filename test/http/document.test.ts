import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import fc from 'fast-check'
import { isStorable } from '../../src/contract/values.ts'
import { scale } from '../faults/lab/scale.ts'
import { anyCharacter } from '../support/characters.ts'
import { authorized, json, startService } from '../support/service.ts'
import { type Answer, call, type Request, toBytes } from '../support/wire.ts'
import { buildDocumentCheck, type Judge } from './document-check.ts'

describe('the traffic, as Prism judges it,', () => {
  let judge: Judge
  before(async () => {
    judge = await buildDocumentCheck()
  })

  it('matches the document for any valid request', async () => {
    const service = await startService('sqlite::memory:')
    await fc.assert(
      fc.asyncProperty(validRequest, async (request) => {
        const answer = await call(service.url, request)
        assert.ok(answer.status < 300 || [404, 409, 412].includes(answer.status), answer.body)
        assert.deepEqual(judge(toBytes(request).toString('latin1'), answer).complaints, [])
      }),
      { numRuns: scale(100, 5_000) },
    )
  })

  const good: Answer = {
    status: 200,
    headers: new Map([
      ['content-type', 'application/json; charset=utf-8'],
      ['x-request-id', 'a-1'],
      ['x-content-type-options', 'nosniff'],
      ['cache-control', 'private, no-cache'],
      ['etag', '"1"'],
    ]),
    body: '{"id":1,"name":"x"}',
  }
  const without = (name: string) => new Map([...good.headers].filter(([key]) => key !== name))
  const wrong: [title: string, answer: Answer, complaint: RegExp][] = [
    ['a status that it does not list', { ...good, status: 202 }, /status code/],
    ['a header that is missing', { ...good, headers: without('etag') }, /etag/i],
    ['no request id', { ...good, headers: without('x-request-id') }, /x-request-id/i],
    [
      'another cache policy',
      { ...good, headers: new Map([...good.headers, ['cache-control', 'public']]) },
      /cache-control/i,
    ],
    ['a member of another type', { ...good, body: '{"id":1,"name":5}' }, /name must be string/],
    ['a member that is missing', { ...good, body: '{"id":1}' }, /name/],
    ['another shape', { ...good, body: '[]' }, /must be object/],
    [
      'another media type',
      { ...good, headers: new Map([...good.headers, ['content-type', 'text/plain']]) },
      /media type/,
    ],
    [
      'an error without its number',
      { ...good, status: 404, body: '{"message":"No."}' },
      /required property 'error'/,
    ],
    [
      'an error with more',
      { ...good, status: 404, body: '{"error":40401,"message":"","x":1}' },
      /x/,
    ],
  ]
  for (const [title, answer, complaint] of wrong) {
    it(`would not match the document with ${title}`, () => {
      const sent = toBytes({ path: '/plants/1', headers: authorized }).toString()
      assert.deepEqual(judge(sent, good).complaints, [])
      assert.match(judge(sent, answer).complaints.join(), complaint)
    })
  }

  it('would not match the document if a request without a name were accepted', () => {
    const sent = toBytes({ method: 'PUT', path: '/plants/1', headers: json, body: '{"tag":"x"}' })
    assert.match(judge(sent.toString(), good).complaints.join(), /name/)
  })
})

const id = fc.oneof(
  fc.bigInt({ min: 1n, max: 9n }),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
)
const text = fc.string({ unit: anyCharacter, maxLength: 20 }).filter(isStorable)
const tag = fc.option(text, { nil: undefined })
const members = fc.record({ name: text, tag })
const condition = fc.constantFrom({}, { 'If-Match': '*' }, { 'If-None-Match': '"1", W/"2"' })

const validRequest: fc.Arbitrary<Request> = fc.oneof(
  fc.tuple(id, members).map(([id, plant]) => ({
    method: 'POST',
    path: '/plants',
    headers: json,
    body: `{"id":${id},${JSON.stringify(plant).slice(1)}`,
  })),
  fc.tuple(id, members, condition).map(([id, plant, headers]) => ({
    method: 'PUT',
    path: `/plants/${id}`,
    headers: { ...json, ...headers },
    body: JSON.stringify(plant),
  })),
  fc
    .tuple(fc.constantFrom('GET', 'HEAD', 'DELETE'), id, condition)
    .map(([method, id, headers]) => ({
      method,
      path: `/plants/${id}`,
      headers: { ...authorized, ...headers },
    })),
  fc.tuple(fc.integer({ min: 1, max: 1000 }), id, tag).map(([limit, after, tag]) => ({
    path: `/plants?limit=${limit}&after=${after}${tag === undefined ? '' : `&tag=${encodeURIComponent(tag)}`}`,
    headers: authorized,
  })),
  fc
    .constantFrom('/plants', '/plants/1', '/docs', '/healthz')
    .map((path) => ({ method: 'OPTIONS', path })),
)
