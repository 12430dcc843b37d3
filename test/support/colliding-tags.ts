/**
 * Tags that PostgreSQL's `hashtextextended(tag, 0)` gives one value. Its function (Bob Jenkins's
 * lookup3) mixes blocks of 12 bytes into a state of the same size, so a second block undoes
 * whatever the first one did.
 */
export function findCollidingTags(count: number): string[] {
  const tags: string[] = []
  for (let number = 0; tags.length < count; number++) {
    const first = Buffer.from(number.toString(36).padStart(12, '-'))
    const second = mix(toWords(first).map((word) => word + start)).map((word) => target - word)
    if (second.every(isAscii)) tags.push(`${first}${Buffer.from(Int32Array.from(second).buffer)}`)
  }
  return tags
}

/** Whether the four bytes of a word are characters of ASCII, none of them NUL. */
function isAscii(word: number): boolean {
  return (
    (word & 0x80808080) === 0 && [0xff, 0xff00, 0xff0000, 0xff000000].every((mask) => word & mask)
  )
}

const length = 24
const start = (0x9e3779b9 + length + 3_923_095) | 0
/** Any number will do: each part of the state that all tags reach. */
const target = 0x12345678

function toWords(bytes: Buffer): number[] {
  return [0, 4, 8].map((offset) => bytes.readInt32LE(offset))
}

function mix([first = 0, second = 0, third = 0]: number[]): number[] {
  let [a, b, c] = [first | 0, second | 0, third | 0]
  for (const [one, two, three] of [
    [4, 6, 8],
    [16, 19, 4],
  ] as const) {
    a = ((a - c) | 0) ^ rotate(c, one)
    c = (c + b) | 0
    b = ((b - a) | 0) ^ rotate(a, two)
    a = (a + c) | 0
    c = ((c - b) | 0) ^ rotate(b, three)
    b = (b + a) | 0
  }
  return [a, b, c]
}

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits))
}
