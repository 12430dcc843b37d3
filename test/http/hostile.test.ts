import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { ErrorNumber } from '../../src/contract/errors.ts'
import { limits } from '../../src/contract/limits.ts'
import { engines } from '../support/engines.ts'
import { json, startService, type TestService, toCreate } from '../support/service.ts'
import { exchange, openSocket, toBytes } from '../support/wire.ts'

const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

/** Bodies and the errors that they get. None of them may store a plant with the id 1. */
const refusals: [title: string, body: string | Buffer, error: ErrorNumber][] = [
  ['an id in quotes', '{"id":"1","name":"x"}', 40003],
  ['true as an id', '{"id":true,"name":"x"}', 40003],
  ['an array as an id', '{"id":[1],"name":"x"}', 40003],
  ['null as an id', '{"id":null,"name":"x"}', 40003],
  ['null as everything', '{"id":null,"name":null}', 40003],
  ['a fraction as an id', '{"id":1.5,"name":"x"}', 40003],
  ['2^63 as an id', '{"id":9223372036854775808,"name":"x"}', 40003],
  ['-2^63-1 as an id', '{"id":-9223372036854775809,"name":"x"}', 40003],
  ['a huge exponent', '{"id":1e999999999,"name":"x"}', 40003],
  ['a tiny exponent', '{"id":1e-999999999,"name":"x"}', 40003],
  ['an exponent of a thousand digits', `{"id":1e${'9'.repeat(1000)},"name":"x"}`, 40003],
  ['an id of thousands of digits', `{"id":${'1'.repeat(8_000)},"name":"x"}`, 40003],
  [
    'zeros between two digits, thousands of them',
    `{"id":1${'0'.repeat(8_000)}1,"name":"x"}`,
    40003,
  ],
  ['a number as a name', '{"id":1,"name":5}', 40003],
  ['null as a tag', '{"id":1,"name":"x","tag":null}', 40003],
  ['an object as a tag', '{"id":1,"name":"x","tag":{}}', 40003],
  ['NUL in a name', '{"id":1,"name":"a\\u0000b"}', 40003],
  ['NUL in a tag', '{"id":1,"name":"x","tag":"\\u0000"}', 40003],
  ['a lone high surrogate', '{"id":1,"name":"\\ud800"}', 40003],
  ['a lone low surrogate', '{"id":1,"name":"x","tag":"\\udc00\\ud800"}', 40003],
  ['a name only in __proto__', '{"id":1,"__proto__":{"name":"x"}}', 40003],
  ['a string', '"plant"', 40003],
  ['null', 'null', 40003],
  ['a number', '1', 40003],
  ['an id twice', '{"id":1,"id":2,"name":"x"}', 40001],
  ['a name twice', '{"id":1,"name":"x","name":"y"}', 40001],
  ['an unknown member twice', '{"id":1,"name":"x","z":1.5,"z":1.50000000000000000001}', 40001],
  ['a member of a nested object twice', '{"id":1,"name":"x","z":{"a":1,"b":2,"a":3}}', 40001],
  ['a nested member in two spellings', '{"id":1,"name":"x","z":[{"a":1,"\\u0061":1}]}', 40001],
  ['the same member in two spellings', '{"id":1,"name":"x","n\\u0061me":"y"}', 40001],
  ['invalid UTF-8', Buffer.from('{"id":1,"name":"\xff"}', 'latin1'), 40001],
  ['an overlong encoding', Buffer.from('{"id":1,"name":"\xc0\xaf"}', 'latin1'), 40001],
  ['a character that is cut off', Buffer.from('{"id":1,"name":"\xc3"}', 'latin1'), 40001],
  [
    'a character beyond U+10FFFF',
    Buffer.from('{"id":1,"name":"\xf4\x90\x80\x80"}', 'latin1'),
    40001,
  ],
  ['an encoded surrogate', Buffer.from('{"id":1,"name":"\xed\xa0\x80"}', 'latin1'), 40001],
  ['UTF-16', Buffer.from('{"id":1,"name":"x"}', 'utf16le'), 40001],
  ['a byte order mark', '\ufeff{"id":1,"name":"x"}', 40001],
  ['a comma at the end', '{"id":1,"name":"x",}', 40001],
  ['a comment', '{"id":1,"name":"x"/**/}', 40001],
  ['single quotes', "{'id':1,'name':'x'}", 40001],
  ['a leading zero', '{"id":01,"name":"x"}', 40001],
  ['a leading plus', '{"id":+1,"name":"x"}', 40001],
  ['hexadecimal', '{"id":0x1,"name":"x"}', 40001],
  ['NaN', '{"id":NaN,"name":"x"}', 40001],
  ['a raw line break in a string', '{"id":1,"name":"a\nb"}', 40001],
  ['a raw control character in a string', '{"id":1,"name":"a\u001fb"}', 40001],
  ['two documents', '{"id":1,"name":"x"}{"id":1,"name":"x"}', 40001],
  ['an unknown escape', '{"id":1,"name":"\\x41"}', 40001],
  ['33 containers', `{"id":1,"name":"x","z":${deep(32)}}`, 40001],
  ['eight thousand brackets', '['.repeat(8_000), 40001],
  ['a thousand braces', '{"a":'.repeat(1_000), 40001],
  [
    'a member name of thousands of letters, twice',
    `{"${'k'.repeat(4_000)}":1,"${'k'.repeat(4_000)}":2}`,
    40001,
  ],
]

const accepted: [title: string, id: string, exact: string][] = [
  ['the largest id', '9223372036854775807', '9223372036854775807'],
  ['the smallest id', '-9223372036854775808', '-9223372036854775808'],
  ['an id beyond 2^53', '9007199254740993', '9007199254740993'],
  ['a fraction that is an integer', '2.0', '2'],
  ['an exponent', '1e3', '1000'],
  ['a large id with an exponent', '9.223372036854775805e18', '9223372036854775805'],
  ['a negative exponent', '31000e-3', '31'],
  ['minus zero', '-0', '0'],
  ['thousands of zeros, scaled down', `41${'0'.repeat(8_000)}e-8000`, '41'],
  ['an exponent of zero', '5E+0', '5'],
]

for (const engine of engines) {
  describe(`hostile bodies on ${engine.name}`, () => {
    let service: TestService
    before(async () => {
      service = await startService(await engine.newUrl())
    })

    for (const [title, body, error] of refusals) {
      it(`refuses ${title} and stores nothing`, async () => {
        const answer = await service.create(body)
        assert.equal(JSON.parse(answer.body).error, error, answer.body)
        assert.equal(answer.status, 400)
        assert.equal(await statusOf(service, '1'), 404)
      })
    }

    for (const [title, id, exact] of accepted) {
      it(`stores ${title} to the last digit`, async () => {
        const answer = await service.create(`{"id":${id},"name":"x"}`)
        assert.equal(answer.headers.get('location'), `/plants/${exact}`)
        const { body } = await service.call({ path: `/plants/${exact}` })
        assert.equal(body, `{"id":${exact},"name":"x"}`)
      })
    }

    it('accepts 32 containers', async () => {
      const answer = await service.create(`{"id":32,"name":"x","z":${deep(31)},"s":"[[[[\\"{{{{"}`)
      assert.equal(answer.status, 200)
    })

    it('accepts a body of exactly the largest size', async () => {
      const start = '{"id":33,"name":"'
      const body = `${start}${'x'.repeat(limits.bodyBytes - start.length - 2)}"}`
      assert.equal((await service.create(body)).status, 200)
      const { body: stored } = await service.call({ path: '/plants/33' })
      assert.equal(stored, body)
    })

    it('refuses a body of one byte more, and stores nothing', async () => {
      const start = '{"id":38,"name":"'
      const body = `${start}${'x'.repeat(limits.bodyBytes - start.length - 1)}"}`
      const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
      const chunked = Buffer.concat([
        toBytes({
          method: 'POST',
          path: '/plants',
          headers: { ...json, 'Transfer-Encoding': 'chunked' },
        }),
        Buffer.from(chunks),
      ])
      const [inChunks] = await exchange(service.url, chunked)
      for (const answer of [await service.create(body), inChunks]) {
        assert.deepEqual([answer?.status, JSON.parse(answer?.body ?? '').error], [413, 41300])
      }
      assert.equal(await statusOf(service, '38'), 404)
    })

    it('keeps the connection after a refused body', async () => {
      const bad = toBytes({ method: 'POST', path: '/plants', headers: json, body: '{"id":' })
      const good = toCreate(34)
      const answers = await exchange(service.url, Buffer.concat([bad, good]), { answers: 2 })
      assert.deepEqual(
        answers.map(({ status }) => status),
        [400, 200],
      )
    })

    it('answers a complete request before it refuses the broken bytes after it', async () => {
      const good = toCreate(35)
      const bytes = Buffer.concat([good, Buffer.from('broken\r\n\r\n')])
      const answers = await exchange(service.url, bytes, { answers: 2 })
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 400],
      )
    })

    it('stores nothing of a create whose connection ends early', async () => {
      const bytes = toCreate(36)
      const socket = openSocket(service.url)
      await new Promise((resolve) => socket.write(bytes.subarray(0, -1), resolve))
      socket.destroy()
      assert.equal(await statusOf(service, '36'), 404)
      assert.deepEqual(
        service.log.filter((line) => JSON.parse(line).level >= 50),
        [],
      )
    })
  })
}

async function statusOf(service: TestService, id: string): Promise<number> {
  return (await service.call({ path: `/plants/${id}` })).status
}
