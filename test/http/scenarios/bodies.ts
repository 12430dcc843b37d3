import { limits } from '../../../src/contract/limits.ts'
import { answered, get, post, postChunks, refused, type Scenario } from './scenario.ts'

/** A create whose body has this many bytes. */
function toSized(id: number, bytes: number): string {
  const start = `{"id":${id},"name":"`
  return `${start}${'x'.repeat(bytes - start.length - 2)}"}`
}

function toDeep(id: number, depth: number): string {
  return `{"id":${id},"name":"x","z":${'['.repeat(depth)}${']'.repeat(depth)}}`
}

/** Ids as they are written, and as they are stored. */
const ids: [written: string, id: string][] = [
  ['9223372036854775807', '9223372036854775807'],
  ['-9223372036854775808', '-9223372036854775808'],
  ['9007199254740993', '9007199254740993'],
  ['2.0', '2'],
  ['1e3', '1000'],
  ['9.223372036854775805e18', '9223372036854775805'],
  ['31000e-3', '31'],
  ['-0', '0'],
  [`41${'0'.repeat(8_000)}e-8000`, '41'],
]

const exact: Scenario[] = ids.flatMap(([written, id]) => [
  answered(`a create with the id ${written.slice(0, 30)}`, post(`{"id":${written},"name":"x"}`), {
    headers: { location: `/plants/${id}` },
  }),
  answered(`a get of the plant ${id}`, get(`/plants/${id}`), { body: `{"id":${id},"name":"x"}` }),
])

const noJson: Scenario[] = [
  ...['\xff', '\xc0\xaf', '\xc3', '\xf4\x90\x80\x80', '\xed\xa0\x80'].map((bytes) =>
    refused(
      40001,
      `a name that is not UTF-8: ${JSON.stringify(bytes)}`,
      post(Buffer.from(`{"id":300,"name":"${bytes}"}`, 'latin1')),
      { body: /is not UTF-8/ },
    ),
  ),
  refused(40001, 'UTF-16', post(Buffer.from('{"id":300,"name":"x"}', 'utf16le'))),
  refused(40001, 'a byte order mark', post('\ufeff{"id":300,"name":"x"}')),
  refused(40001, '33 containers', post(toDeep(300, 32))),
]

const noPlant: Scenario[] = [
  '{"id":"300","name":"x"}',
  '{"id":9223372036854775808,"name":"x"}',
  '{"id":1e999999999,"name":"x"}',
  '{"id":300,"name":"a\\u0000b"}',
  '{"id":300,"name":"x","tag":"\\udc00\\ud800"}',
  '{"id":300,"name":"x","tag":null}',
  '{"id":300,"__proto__":{"name":"x"}}',
].map((body) => refused(40003, `the body ${body}`, post(body)))

const sizes: Scenario[] = [
  answered('32 containers', post(toDeep(301, 31))),
  answered('a body of the largest size', post(toSized(302, limits.bodyBytes))),
  answered('a get of the largest plant', get('/plants/302'), {
    body: toSized(302, limits.bodyBytes),
  }),
  refused(41300, 'a body of one byte more', post(toSized(300, limits.bodyBytes + 1))),
  refused(
    41300,
    'a body of one byte more in a chunk',
    postChunks(`2001\r\n${toSized(300, limits.bodyBytes + 1)}\r\n0\r\n\r\n`),
  ),
  refused(40401, 'a get of the plant that none of these stored', get('/plants/300')),
]

/** Bodies at the bounds of what is a plant. Other faults of JSON have suites in test/json. */
export const bodies: Scenario[] = [...exact, ...noJson, ...noPlant, ...sizes]
