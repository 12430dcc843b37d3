import fc from 'fast-check'
import { anyCharacter } from '../support/characters.ts'

/** White space that JSON allows and, now and then, white space that it does not. */
export const space = fc.oneof(
  { weight: 200, arbitrary: fc.constantFrom('', '', '', ' ', '\n\t ', '\r\n') },
  { weight: 1, arbitrary: fc.constantFrom('\u00a0', '\u2028', '\ufeff', '\v', '\f', '\0') },
)

/** A valid text or, one time in 40, a broken one. */
const mostly = (valid: fc.Arbitrary<string>, ...broken: string[]) =>
  fc.oneof({ weight: 39, arbitrary: valid }, { weight: 1, arbitrary: fc.constantFrom(...broken) })

/** Numbers, many of them near the ends of int64, in several spellings. */
export const number = mostly(
  fc.oneof(
    fc.bigInt({ min: -(2n ** 65n), max: 2n ** 65n }).map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.constantFrom('0', '-0', '1.0', '1e3', '31000E-3', '1.5', '9.2e+18', '9223372036854775808'),
  ),
  ...['01', '+1', '.5', '1.', '1e', '1e+', '-', '--1', '0x1', 'NaN', 'Infinity'],
)

/** Strings, some of their characters escaped. */
export const string = mostly(
  fc.oneof(
    fc.string({ unit: anyCharacter }).map((value) => JSON.stringify(value)),
    fc.constantFrom('"\\u0000"', '"\\ud800"', '"\\uD83C\\uDF31"', '"\\/\\b\\f\\n\\r\\t\\"\\\\"'),
  ),
  ...['"\u0001"', '"a', '"\\x41"', '"\\u12"', '"\\u12g4"', '"\\"', "'a'", '"\\', '"\n"'],
)

/** Few names, in several spellings, so that duplicates occur. */
const name = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom('"id"', '"name"', '"tag"', '"i\\u0064"', '"n\\u0061m\\u0065"'),
  },
  {
    weight: 6,
    arbitrary: fc.constantFrom('""', '"a"', '"\\u0061"', '"\\n"', '"__proto__"', '"9"'),
  },
  { weight: 3, arbitrary: string },
)

const { value, object } = fc.letrec<{ value: string; object: string; array: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    { weight: 3, arbitrary: number },
    { weight: 3, arbitrary: string },
    { weight: 2, arbitrary: mostly(fc.constantFrom('null', 'true', 'false'), 'nul', 'falsey', '') },
    { weight: 1, arbitrary: fc.constantFrom(30, 31, 32).map((n) => '['.repeat(n) + ']'.repeat(n)) },
    { weight: 2, arbitrary: tie('array') },
    { weight: 2, arbitrary: tie('object') },
  ),
  array: fc
    .array(fc.tuple(space, tie('value'), space), { maxLength: 4 })
    .map((items) => `[${items.map((parts) => parts.join('')).join(',')}]`),
  object: fc
    .array(fc.tuple(space, name, space, fc.constant(':'), space, tie('value'), space), {
      maxLength: 6,
    })
    .map((members) => `{${members.map((parts) => parts.join('')).join(',')}}`),
}))

/** Small damage to a text: a part of it removed, doubled or overwritten. */
const damage = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  length: fc.integer({ min: 0, max: 3 }),
  insert: fc.constantFrom(...'|,|:|"|\\|{|}|[|]|0|-|.|e|\ufeff|\n|\0|/**/|"id":1,|null'.split('|')),
})

/** Texts that are JSON, or nearly. */
export const text = fc
  .tuple(
    fc.oneof({ weight: 5, arbitrary: object }, { weight: 1, arbitrary: value }),
    fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 2, arbitrary: fc.array(damage, { minLength: 1, maxLength: 2 }) },
    ),
  )
  .map(([whole, damages]) =>
    damages.reduce((current, { at, length, insert }) => {
      const start = Math.floor(at * current.length)
      return current.slice(0, start) + insert + current.slice(start + length)
    }, whole),
  )
