import type { ErrorNumber } from '../../../src/contract/errors.ts'
import { limits } from '../../../src/contract/limits.ts'

/** A body that is built to be costly, and its answer: an error number, or 200. */
export interface Bomb {
  readonly title: string
  readonly toBody: () => Buffer
  readonly answer: ErrorNumber | 200
}

const max = limits.bodyBytes
const depth = limits.jsonDepth

/** Repeats a unit as often as a body allows. */
function fill(start: string, unit: string, end: string): string {
  const room = max - Buffer.byteLength(start) - Buffer.byteLength(end)
  return start + unit.repeat(Math.floor(room / Buffer.byteLength(unit))) + end
}

const fillName = (unit: string, end = '') => fill('{"id":1,"name":"', unit, `${end}"}`)
const fillId = (start: string, unit: string, end = '') =>
  fill(`{"id":${start}`, unit, `${end},"name":"x"}`)
/** Fills a member that no shape names. */
const fillIgnored = (start: string, unit: string, end: string) =>
  fill(`{"id":1,"name":"x","z":${start}`, unit, `${end}}`)
const fillArray = (unit: string) => fillIgnored('[0', `,${unit}`, ']')

/** As many members as a body allows, each with another name. */
function fillMembers(toName: (index: number) => string, value = '0'): string {
  const members = ['"id":1', '"name":"x"']
  let room = max - '{"id":1,"name":"x"}'.length
  for (let index = 0; ; index++) {
    const member = `"${toName(index)}":${value}`
    room -= Buffer.byteLength(member) + 1
    if (room < 0) return `{${members.join(',')}}`
    members.push(member)
  }
}

/** Objects that nest as deep as is allowed, over and over. */
const fillNests = (open: string, close: string) =>
  fillArray(`${open.repeat(depth - 2)}0${close.repeat(depth - 2)}`)
const manyNames = (count: number) =>
  `{${Array.from({ length: count }, (_, index) => `"${index.toString(36)}":0`).join(',')}}`
const base36 = (index: number) => index.toString(36)

/** V8 keeps integers below 2^24 in the hash of a name: these differ only in their upper bits. */
function toColliding(index: number): string {
  const perBucket = 152
  return String((index % perBucket) * 65_536 + Math.floor(index / perBucket))
}

const bodies: [title: string, answer: Bomb['answer'], toBody: () => string | Buffer][] = [
  // Containers
  ['opening brackets', 40001, () => fill('', '[', '')],
  ['opening braces', 40001, () => fill('', '{"a":', '')],
  ['brackets and braces in turns', 40001, () => fill('', '[{"a":', '')],
  ['closing brackets', 40001, () => fill('', ']', '')],
  ['brackets deep in an ignored member', 40001, () => fillIgnored('[', '[', ']')],
  ['empty arrays', 200, () => fillArray('[]')],
  ['empty objects', 200, () => fillArray('{}')],
  ['objects with one integer name', 200, () => fillArray('{"1023":0}')],
  ['objects with one short name', 200, () => fillArray('{"a":0}')],
  ['objects with one escaped name', 200, () => fillArray('{"\\n":0}')],
  ['objects with two names', 200, () => fillArray('{"a":0,"b":0}')],
  ['objects with two escaped names', 200, () => fillArray('{"\\n":0,"\\r":0}')],
  ['objects with nine names', 200, () => fillArray(manyNames(9))],
  ['objects with 100 names', 200, () => fillArray(manyNames(100))],
  ['arrays at the allowed depth', 200, () => fillNests('[', ']')],
  ['objects at the allowed depth', 200, () => fillNests('{"a":', '}')],
  ['objects of two members at the allowed depth', 200, () => fillNests('{"a":0,"b":', '}')],
  ['__proto__ at the allowed depth', 200, () => fillNests('{"__proto__":', '}')],
  // Names
  ['short names', 200, () => fillMembers((index) => `m${base36(index)}`)],
  ['short names of empty objects', 200, () => fillMembers((index) => `m${base36(index)}`, '{}')],
  ['names that are integers', 200, () => fillMembers(String)],
  ['names that collide as integers', 200, () => fillMembers(toColliding)],
  ['names with an escape', 200, () => fillMembers((index) => `\\n${base36(index)}`)],
  ['names with a Unicode escape', 200, () => fillMembers((index) => `\\u4e00${base36(index)}`)],
  [
    'names in three bytes',
    200,
    () => fillMembers((index) => String.fromCodePoint(0x4e00 + (index % 20_000)) + base36(index)),
  ],
  ['long names', 200, () => fillMembers((index) => 'k'.repeat(1_000) + index)],
  ['names that begin with __proto__', 200, () => fillMembers((index) => `__proto__${index}`)],
  [
    'a duplicate after many names',
    40001,
    () => {
      const body = fillMembers((index) => `m${base36(index)}`)
      return `${body.slice(0, -20).replace(/,[^,]*$/, '')},"\\u006d0":0}`
    },
  ],
  [
    'a duplicate after objects with 100 names',
    40001,
    () => fill('{"id":1,"name":"x","z":[0', `,${manyNames(100)}`, '],"a":0,"a":0}'),
  ],
  ['a name over and over', 40001, () => fill('{"id":1,"name":"x"', ',"a":0', '}')],
  ['an id over and over', 40001, () => fill('{"name":"x"', ',"id":1', '}')],
  ['__proto__ over and over', 40001, () => fill('{"id":1,"name":"x"', ',"__proto__":0', '}')],
  // Numbers
  ['an id of 1e999999999', 40003, () => '{"id":1e999999999,"name":"x"}'],
  ['an id of -1e-999999999', 40003, () => '{"id":-1e-999999999,"name":"x"}'],
  ['an id of 0e999999999', 200, () => '{"id":0e999999999,"name":"x"}'],
  ['an id of thousands of digits', 40003, () => fillId('', '9')],
  ['an id of thousands of decimals', 40003, () => fillId('1.', '9')],
  ['an id of thousands of decimal zeros', 200, () => fillId('1.', '0')],
  ['an id that ends in thousands of zeros', 40003, () => fillId('1', '0')],
  ['an id that begins with thousands of zeros', 40001, () => fillId('', '0')],
  ['an id of thousands of decimal zeros and a one', 40003, () => fillId('0.', '0', '1')],
  ['an exponent of thousands of digits', 40003, () => fillId('1e', '9')],
  ['a negative exponent of thousands of digits', 40003, () => fillId('1e-', '9')],
  ['an exponent of thousands of zeros', 200, () => fillId('1e', '0')],
  ['thousands of minus signs', 40001, () => fillId('', '-', '1')],
  ['ignored numbers', 200, () => fillArray('1')],
  ['ignored exponents', 200, () => fillArray('1e999999999')],
  ['an ignored number of thousands of digits', 200, () => fillIgnored('', '9', '')],
  ['ignored words', 200, () => fillArray('null')],
  // Strings
  ['a name that fills the body', 200, () => fillName('x')],
  ['a name of quotes', 200, () => fillName('\\"')],
  ['a name of backslashes', 200, () => fillName('\\\\')],
  ['a name of line breaks', 200, () => fillName('\\n')],
  ['a name of Unicode escapes', 200, () => fillName('\\u00e9')],
  ['a name of escaped surrogate pairs', 200, () => fillName('\\ud83c\\udf31')],
  ['a name of lone surrogates', 40003, () => fillName('\\ud83c')],
  ['a name that ends in a lone surrogate', 40003, () => fillName('\\ud83c\\udf31', '\\ud83c')],
  ['a name of four-byte characters', 200, () => fillName('\u{1f331}')],
  ['a name of NUL', 40003, () => fillName('\\u0000')],
  ['a name without an end', 40001, () => fill('{"id":1,"name":"', 'x', '')],
  ['an escape without an end', 40001, () => fill('{"id":1,"name":"', 'x', '\\')],
  ['ignored empty strings', 200, () => fillArray('""')],
  ['an ignored string of escapes', 200, () => fillIgnored('"', '\\u00e9', '"')],
  // Everything else
  ['white space between members', 200, () => fill('{"id":1,', ' \n', '"name":"x"}')],
  ['white space and nothing else', 40002, () => fill('', ' \r\n\t', '')],
  ['white space that is not JSON', 40001, () => fill('', '\u00a0', '')],
  ['line breaks before a mistake', 40001, () => fill('', '\n', 'x')],
  ['commas', 40001, () => fill('[', ',', ']')],
  ['colons', 40001, () => fill('{"a"', ':', '}')],
  ['bytes that are not UTF-8', 40001, () => Buffer.alloc(max, 0xff)],
  ['zero bytes', 40001, () => Buffer.alloc(max)],
]

/** Bodies of up to the largest size that are costly for common parsers. */
export const bombs: readonly Bomb[] = bodies.map(([title, answer, toBody]) => {
  return { title, answer, toBody: () => Buffer.from(toBody()) }
})
