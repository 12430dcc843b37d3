import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ErrorNumber } from '../../src/contract/errors.ts'
import { startService } from '../support/service.ts'
import { isLong, scale } from './scale.ts'

const most = 1024 * 1024
/** A plant with one more member, which nobody asked for, as large as it may be. */
const ignored = (value: string) => `{"id":1,"name":"x","z":${value}}`
const fill = (start: string, unit: string, end: string) =>
  start + unit.repeat(Math.floor((most - start.length - end.length) / unit.length)) + end
const inIgnored = (start: string, unit: string, end: string) =>
  fill(`{"id":1,"name":"x","z":${start}`, unit, `${end}}`)
const members = (name: (index: number) => string, count: number) =>
  `{"id":1,"name":"x",${Array.from({ length: count }, (_, index) => `"${name(index)}":0`).join(',')}}`

/** A body of about a megabyte, and what it gets: an error number, or 200. */
const bombs: [title: string, body: string | Buffer, answer: ErrorNumber | 200][] = [
  ['as many brackets as fit', fill('', '[', ''), 40001],
  ['as many braces as fit', fill('', '{"a":', ''), 40001],
  ['brackets and braces in turns', fill('', '[{"a":', ''), 40001],
  ['brackets that close and never open', fill('', ']', ''), 40001],
  ['brackets deep in an ignored member', ignored('['.repeat(400_000) + ']'.repeat(400_000)), 40001],
  ['a flat array of empty arrays', inIgnored('[[]', ',[]', ']'), 200],
  ['a flat array of empty objects', inIgnored('[{}', ',{}', ']'), 200],
  [
    'nests of just the allowed depth',
    inIgnored('[0', `,${'['.repeat(30)}${']'.repeat(30)}`, ']'),
    200,
  ],
  ['members without end', members((index) => `m${index.toString(36)}`, 100_000), 200],
  ['members whose names are numbers', members((index) => `${index * 7919}`, 60_000), 200],
  ['members whose names are long', members((index) => `${'k'.repeat(1000)}${index}`, 1000), 200],
  [
    'members that all hash alike in their first letters',
    members((index) => `__proto__${index}`, 50_000),
    200,
  ],
  ['one member over and over, with one value', fill('{"id":1,"name":"x"', ',"a":0', '}'), 40001],
  [
    'one member over and over, with two values',
    fill('{"id":1,"name":"x","a":1', ',"a":0', '}'),
    40001,
  ],
  ['__proto__ over and over', fill('{"id":1,"name":"x"', ',"__proto__":0', '}'), 40001],
  ['1e999999999 as an id', '{"id":1e999999999,"name":"x"}', 40003],
  ['-1e-999999999 as an id', '{"id":-1e-999999999,"name":"x"}', 40003],
  ['0e999999999 as an id', '{"id":0e999999999,"name":"x"}', 200],
  ['a million digits as an id', fill('{"id":', '9', ',"name":"x"}'), 40003],
  ['a million digits behind the point', fill('{"id":1.', '9', ',"name":"x"}'), 40003],
  ['a million zeros behind the point', fill('{"id":1.', '0', ',"name":"x"}'), 200],
  ['a million zeros at the end', fill('{"id":1', '0', ',"name":"x"}'), 40003],
  ['a million zeros before the point', fill('{"id":', '0', ',"name":"x"}'), 40001],
  ['a million zeros, then a digit', fill('{"id":0.', '0', '1,"name":"x"}'), 40003],
  ['an exponent of a million digits', fill('{"id":1e', '9', ',"name":"x"}'), 40003],
  ['an exponent of a million zeros', fill('{"id":1e', '0', ',"name":"x"}'), 200],
  ['a million minus signs', fill('{"id":', '-', '1,"name":"x"}'), 40001],
  ['huge numbers in an ignored member', inIgnored('[0', ',1e999999999', ']'), 200],
  ['numbers in an ignored member', inIgnored('[0', ',1', ']'), 200],
  ['a name of a megabyte', fill('{"id":1,"name":"', 'x', '"}'), 200],
  ['a name of quotes', fill('{"id":1,"name":"', '\\"', '"}'), 200],
  ['a name of backslashes', fill('{"id":1,"name":"', '\\\\', '"}'), 200],
  ['a name of escapes', fill('{"id":1,"name":"', '\\u00e9', '"}'), 200],
  ['a name of pairs of surrogates', fill('{"id":1,"name":"', '\\ud83c\\udf31', '"}'), 200],
  ['a name of lone surrogates', fill('{"id":1,"name":"', '\\ud83c', '"}'), 40003],
  ['one lone surrogate at the end', fill('{"id":1,"name":"', '\\ud83c\\udf31', '\\ud83c"}'), 40003],
  [
    'a name of four-byte characters',
    Buffer.from(`{"id":1,"name":"${'\u{1f331}'.repeat(260_000)}"}`),
    200,
  ],
  ['a name of NUL', fill('{"id":1,"name":"', '\\u0000', '"}'), 40003],
  ['a name without an end', fill('{"id":1,"name":"', 'x', ''), 40001],
  ['an escape without an end', fill('{"id":1,"name":"', 'x', '\\'), 40001],
  ['white space in every place', fill('{"id":1,', ' \n', '"name":"x"}'), 200],
  ['white space and nothing else', fill('', ' \r\n\t', ''), 40002],
  ['white space that JSON does not know', fill('', '\u00a0', '').slice(0, 500_000), 40001],
  ['commas', fill('[', ',', ']'), 40001],
  ['colons', fill('{"a"', ':', '}'), 40001],
  ['bytes that are no UTF-8', Buffer.alloc(most, 0xff), 40001],
  ['zeros', Buffer.alloc(most), 40001],
  ['one byte more than a megabyte', `${fill('{"id":1,"name":"', 'x', '"}')} `, 41300],
]

describe('a JSON bomb', async () => {
  const service = await startService('sqlite::memory:')
  /** A hang, by any measure; how long each really takes is in the diagnostics. */
  const boundMs = 10_000
  const rounds = scale(1, 5)

  async function timeOf(body: string | Buffer) {
    const startedAt = performance.now()
    const answer = await service.create(body)
    return { answer, ms: performance.now() - startedAt }
  }

  for (const [title, body, expected] of bombs) {
    it(`is answered with ${expected}: ${title}`, async (t) => {
      for (let round = 0; round < rounds; round++) {
        const { answer, ms } = await timeOf(body)
        const { status } = await service.call({ method: 'DELETE', path: findPath(answer) })
        const actual = answer.status === 200 ? 200 : JSON.parse(answer.body).error
        assert.equal(actual, expected, answer.body.slice(0, 300))
        assert.equal(status, expected === 200 ? 204 : 404)
        assert.ok(ms < boundMs, `it took ${ms} ms`)
        const usual = await timeOf('{"id":2,"name":"x"}')
        await service.call({ method: 'DELETE', path: '/plants/2' })
        t.diagnostic(`${ms.toFixed(0)} ms, a usual create ${usual.ms.toFixed(0)} ms`)
      }
    })
  }

  it('leaves no memory taken', async (t) => {
    const collectGarbage = await findGarbageCollector()
    const measure = async () => {
      // What a closed connection held is let go of some turns later.
      for (let turn = 0; turn < 20; turn++) {
        await new Promise(setImmediate)
        if (turn % 5 === 4) collectGarbage()
      }
      const { heapUsed, external } = process.memoryUsage()
      return (heapUsed + external) / most
    }
    // Each bomb has gone off once by now: what is taken from here on is taken again every time.
    const before = await measure()
    const again = bombs.filter((_, place) => isLong || place % 3 === 0)
    for (let round = 0; round < rounds; round++) {
      for (const [, body] of again) {
        const { answer } = await timeOf(body)
        await service.call({ method: 'DELETE', path: findPath(answer) })
      }
    }
    const grown = (await measure()) - before
    t.diagnostic(`${grown.toFixed(1)} MiB more after ${rounds * again.length} bombs`)
    assert.ok(grown < 8, `${grown} MiB`)
  })
})

/** Where the plant is, if it was stored. */
function findPath(answer: { headers: ReadonlyMap<string, string> }): string {
  const location = answer.headers.get('location')
  return location === undefined ? '/plants/1' : location
}

async function findGarbageCollector(): Promise<() => void> {
  const { setFlagsFromString } = await import('node:v8')
  const { runInNewContext } = await import('node:vm')
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}
