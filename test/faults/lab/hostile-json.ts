import type { Random } from './random.ts'

const numbers = [
  '0',
  '-0',
  '1',
  '1.0',
  '1e0',
  '10e-1',
  '1.5',
  '-1',
  '9007199254740993',
  '9223372036854775807',
  '-9223372036854775808',
  '9223372036854775808',
  '-9223372036854775809',
  '1e18',
  '1e19',
  '1e999999999',
  '1e-999999999',
  '0e999999999',
  '01',
  '+1',
  '.5',
  '1.',
  '1e',
  '0x1',
  'NaN',
  'Infinity',
  '--1',
  '1_000',
  '9'.repeat(400),
  `1${'0'.repeat(400)}e-400`,
]

const texts = [
  '""',
  '"Fern"',
  '"F\\u0065rn"',
  '"\\u0000"',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\ud83c\\udf31"',
  '"\u{1f331}"',
  '"\\/\\b\\f\\n\\r\\t\\"\\\\"',
  '"\\x41"',
  '"\\u12"',
  '"a\nb"',
  '"\u007f\u0085\u2028\ufeff"',
  '"__proto__"',
  '"[{[{"',
  `"${'x'.repeat(3000)}"`,
  '"no end',
  "'Fern'",
  '"',
]

const others = ['null', 'true', 'false', 'True', 'undefined', '', ',', '{}', '[]', '[[]]', '/**/1']

const names = [
  '"id"',
  '"name"',
  '"tag"',
  '"i\\u0064"',
  '"__proto__"',
  '"constructor"',
  '"toString"',
]

const spaces = ['', ' ', '\t', '\r\n', '\n  ', '\u00a0', '\ufeff', '\u000b', '\u0000']

const broken = [
  '',
  ' ',
  '\r\n',
  '{',
  '}',
  '{"id":',
  '[',
  ']',
  '{"id":1,"name":"x",}',
  '{"id":1,"name":"x"}}',
  '{"id":1 "name":"x"}',
  '{id:1}',
  'null',
  '"x"',
  '1',
  '\ufeff{"id":1,"name":"x"}',
]

/** Builds a valid plant with this id. */
export function toPlantJson(random: Random, id: string): string {
  const tag = random.isLikely(0.3) ? `,"tag":"${random.pick(['', 'indoor', 'a b', '\u00e9'])}"` : ''
  return `{"id":${id},"name":"Fern ${random.below(1000)}"${tag}}`
}

/** Builds a body: half are valid plants, the others come from a faulty grammar of JSON. */
export function toBody(random: Random, id: string): string {
  if (random.isLikely(0.5)) return toPlantJson(random, id)
  if (random.isLikely(0.15)) return random.pick(broken)
  const space = () => (random.isLikely(0.2) ? random.pick(spaces) : '')
  const members = [
    `"id"${space()}:${space()}${random.isLikely(0.6) ? id : toValue(random, 3)}`,
    `${space()}"name":${random.isLikely(0.6) ? '"Fern"' : toValue(random, 3)}`,
  ]
  for (let more = random.below(4); more > 0; more--) {
    const name = random.isLikely(0.5) ? random.pick(names) : `"m${random.below(5)}"`
    members.splice(random.below(3), 0, `${name}:${toValue(random, 4)}`)
  }
  if (random.isLikely(0.1)) members.splice(random.below(members.length), 1)
  return `${space()}{${members.join(`${space()},`)}${space()}}${space()}`
}

function toValue(random: Random, depth: number): string {
  const kind = random.below(depth > 0 ? 6 : 4)
  if (kind === 0) return random.pick(numbers)
  if (kind === 1) return random.pick(texts)
  if (kind === 2) return random.pick(others)
  if (kind === 3) return random.isLikely(0.2) ? toNest(random) : random.pick(numbers)
  const values = Array.from({ length: random.below(4) }, () => toValue(random, depth - 1))
  if (kind === 4) return `[${values.join(',')}]`
  return `{${values.map((value) => `${random.pick(names)}:${value}`).join(',')}}`
}

/** Nests containers, about as deep as is allowed. */
function toNest(random: Random): string {
  const depth = random.pick([30, 31, 32, 33, 500])
  const [open, close] = random.pick([
    ['[', ']'],
    ['{"a":', '}'],
  ] as const)
  return open.repeat(depth) + (open === '[' ? '' : '1') + close.repeat(depth)
}
