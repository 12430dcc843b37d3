import fc from 'fast-check'
import { anyCharacter } from '../support/characters.ts'

/** White space that JSON allows and, now and then, white space that it does not. */
export const space = fc.oneof(
  { weight: 200, arbitrary: fc.constantFrom('', '', '', ' ', '\n\t ', '\r\n') },
  { weight: 1, arbitrary: fc.constantFrom('\u00a0', '\u2028', '\ufeff', '\v', '\f', '\0') },
)

/** A valid text or, one time in 40, a broken one. */
const mostly = (valid: fc.Arbitrary<string>, broken: fc.Arbitrary<string>) =>
  fc.oneof({ weight: 39, arbitrary: valid }, { weight: 1, arbitrary: broken })

/** Numbers, many of them near the ends of int64, in many spellings. */
export const number = mostly(
  fc.oneof(
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
    fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
    fc
      .tuple(fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }), fc.integer({ min: -25, max: 25 }))
      .map(([digits, exponent]) => `${digits}e${exponent}`),
    fc
      .tuple(fc.integer(), fc.stringMatching(/^[0-9]{1,6}$/), fc.constantFrom('', 'e3', 'E+6'))
      .map(([whole, fraction, exponent]) => `${whole}.${fraction}${exponent}`),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.constantFrom('0', '-0', '1.0', '1e3', '1.5', '9223372036854775808', '-9223372036854775809'),
  ),
  fc.constantFrom('01', '00', '+1', '.5', '1.', '1e', '1e+', '-', '--1', '0x1', 'NaN', 'Infinity'),
)

/** Strings, some of their characters escaped. */
export const string = mostly(
  fc.oneof(
    fc.string({ unit: anyCharacter }).map((value) => JSON.stringify(value)),
    fc.string().map((value) => JSON.stringify(value)),
    fc
      .tuple(
        fc.string({ unit: anyCharacter }),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
      )
      .map(([value, isEscaped]) => toEscaped(value, isEscaped)),
    fc.constantFrom('"\\u0000"', '"\\ud800"', '"\\uD83C\\uDF31"', '"\\/\\b\\f\\n\\r\\t\\"\\\\"'),
  ),
  fc.oneof(
    fc.string({ unit: anyCharacter }).map((value) => `"${value}"`),
    fc.constantFrom('"\u0001"', '"a', '"\\x41"', '"\\u12"', '"\\u12g4"', '"\\"', "'a'", '"\\'),
  ),
)

const word = mostly(
  fc.constantFrom('null', 'true', 'false'),
  fc.constantFrom('nul', 'True', 'tru', 'falsey', 'undefined', ''),
)

/** Few names, in several spellings, so that duplicates occur. */
const name = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom('"id"', '"name"', '"tag"', '"i\\u0064"', '"n\\u0061m\\u0065"'),
  },
  {
    weight: 4,
    arbitrary: fc.constantFrom('""', '"a"', '"\\u0061"', '"\\n"', '"\\u000a"', '"\\u000A"'),
  },
  { weight: 2, arbitrary: fc.constantFrom('"__proto__"', '"constructor"', '"1023"', '"ids"') },
  { weight: 3, arbitrary: string },
)

const nest = fc
  .tuple(fc.integer({ min: 28, max: 35 }), fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }))
  .map(([depth, isArray]) => {
    const kinds = Array.from({ length: depth }, (_, index) => isArray[index % isArray.length])
    const open = kinds.map((isBracket) => (isBracket ? '[' : '{"a":')).join('')
    const close = kinds.map((isBracket) => (isBracket ? ']' : '}')).reverse()
    return `${open}0${close.join('')}`
  })

const { value, object } = fc.letrec<{ value: string; object: string; array: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    { weight: 3, arbitrary: number },
    { weight: 3, arbitrary: string },
    { weight: 2, arbitrary: word },
    { weight: 1, arbitrary: nest },
    { weight: 2, arbitrary: tie('array') },
    { weight: 2, arbitrary: tie('object') },
  ),
  array: fc
    .array(fc.tuple(space, tie('value'), space), { maxLength: 4 })
    .map((items) => `[${items.map((parts) => parts.join('')).join(',')}]`),
  object: fc
    .tuple(
      fc.array(fc.tuple(space, name, space, space, tie('value'), space), { maxLength: 6 }),
      space,
    )
    .map(([members, end]) => {
      const written = members.map(([a, key, b, c, inner, d]) => `${a}${key}${b}:${c}${inner}${d}`)
      return `{${written.join(',') || end}}`
    }),
}))

/** Small damage to a text: a part of it removed, doubled or overwritten. */
const damage = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  length: fc.integer({ min: 0, max: 3 }),
  insert: fc.oneof(
    fc.constantFrom('', ',', ':', '"', '\\', '{', '}', '[', ']', '0', '1', '-', '.', 'e', ' '),
    fc.constantFrom('\ufeff', '\n', '\0', '/**/', '"id":1,', 'null', '\ud800', "'"),
  ),
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

function toEscaped(value: string, isEscaped: readonly boolean[]): string {
  const units = Array.from({ length: value.length }, (_, index) => {
    const code = value.charCodeAt(index)
    const mustEscape = code < 0x20 || code === 0x22 || code === 0x5c
    if (!mustEscape && !isEscaped[index % isEscaped.length]) return value.charAt(index)
    return `\\u${code.toString(16).padStart(4, '0')}`
  })
  return `"${units.join('')}"`
}
