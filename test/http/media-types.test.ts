import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { authorized, startService, type TestService } from '../support/service.ts'

/** Statuses and the media types that get them, by RFC 9110, sections 5.5, 5.6 and 8.3. */
const statuses: [status: 200 | 400 | 415, why: string, types: string[]][] = [
  [
    200,
    'JSON, whatever its case and the white space around it',
    [
      'application/json',
      'APPLICATION/JSON',
      'Application/Json',
      '  application/json  ',
      '\tapplication/json\t',
    ],
  ],
  [
    200,
    'JSON in UTF-8, the value plain or quoted',
    [
      'application/json;charset=utf-8',
      'application/json; charset=utf-8',
      'application/json ;charset=utf-8',
      'application/json\t;\tcharset=utf-8',
      'application/json;charset=UTF-8',
      'application/json;CHARSET=Utf-8',
      'application/json;charset="utf-8"',
      'application/json;charset="UTF-8" ',
    ],
  ],
  [
    200,
    'JSON with parameters that change nothing',
    [
      'application/json;',
      'application/json;;',
      'application/json; ; charset=utf-8 ;',
      'application/json;version=1',
      'application/json;version=1;charset=utf-8',
      'application/json;profile="a;b,c"',
      'application/json;profile="\\"";charset=utf-8',
      'application/json;profile=""',
      `application/json${';'.repeat(31)}charset=utf-8`,
      `application/json${';a=b'.repeat(31)};charset=utf-8`,
      "application/json;!#$%&'*+-.^_`|~=x",
    ],
  ],
  [
    415,
    'JSON in another charset, or in two',
    [
      'application/json;charset=utf-16',
      'application/json;charset=iso-8859-1',
      'application/json;charset=us-ascii',
      'application/json;charset=utf8',
      'application/json;charset=""',
      'application/json;charset="utf-16"',
      'application/json;charset=utf-8;charset=utf-16',
      'application/json;charset=utf-8;charset=utf-8',
    ],
  ],
  [
    415,
    'JSON with more than 32 parameters',
    [`application/json${';'.repeat(32)};charset=utf-8`, `application/json${';a=b'.repeat(33)}`],
  ],
  [
    415,
    'not a media type by the grammar',
    [
      '',
      ';',
      '/',
      'application',
      'application/',
      '/json',
      'json',
      'application /json',
      'application/ json',
      'application/json charset=utf-8',
      'application/json,charset=utf-8',
      'application/json;charset',
      'application/json;charset=',
      'application/json;charset =utf-8',
      'application/json;charset= utf-8',
      'application/json;=utf-8',
      'application/json;charset="utf-8',
      "application/json;charset='utf-8'",
      'application/json;a b=c',
      'application/json, application/json',
      '"application/json"',
      'application\\json',
      'application/json\u00a0',
      'application/json\u00e9',
    ],
  ],
  [
    415,
    'another media type, or a range of them',
    [
      'text/json',
      'text/plain',
      'application/*',
      '*/*',
      '*',
      'application/vnd.api+json',
      'application/json+x',
      'application/jsonp',
      'application/json5',
      'application/x-json',
      'application/problem+json',
      'application/x-ndjson',
      'application/json-seq',
      'application/octet-stream',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'text/html; application/json',
    ],
  ],
  [
    400,
    'not allowed in a header field',
    ['application/json\u0000', 'application/json\u0001', 'application/json\u007f'],
  ],
]

describe('the media type of a body', () => {
  let service: TestService
  let id = 0
  before(async () => {
    service = await startService('sqlite::memory:')
  })

  async function send(types: string[]): Promise<{ status: number; isStored: boolean }> {
    const path = `/plants/${++id}`
    const headers = { ...authorized, 'Content-Type': types }
    const { status } = await service.call({ method: 'PUT', path, headers, body: '{"name":"x"}' })
    return { status, isStored: (await service.call({ path })).status === 200 }
  }

  for (const [expected, why, types] of statuses) {
    for (const type of types) {
      it(`is ${why}, and gets ${expected}: ${JSON.stringify(type)}`, async () => {
        const { status, isStored } = await send([type])
        // Each plant is new, so that it is created.
        assert.equal(status, expected === 200 ? 201 : expected)
        assert.equal(isStored, expected === 200)
      })
    }
  }

  it('must be there once: two get 400, the same or not, empty or not', async () => {
    for (const second of ['application/json', 'text/plain', '']) {
      const twice = await send(['application/json', second])
      assert.deepEqual(twice, { status: 400, isStored: false })
    }
  })
})
