import { toRequest } from './hostile-grammar.ts'
import { buildRandom, type Random } from './random.ts'

/** The bytes of one connection: its pieces in order, each sent in a turn of its own. */
export interface HostileCase {
  readonly seed: number
  readonly index: number
  readonly bytes: Buffer
  readonly pieces: readonly Buffer[]
}

/**
 * The last request on every connection. All complete requests before it are answered first, and its
 * answer ends the connection, so that no test has to wait for more.
 */
export const farewell = Buffer.from(
  'GET /healthz HTTP/1.1\r\nHost: plants.test\r\nConnection: close\r\n\r\n',
)

/** Builds a case, which depends only on the seed and the index. */
export function buildHostileCase(seed: number, index: number): HostileCase {
  const random = buildRandom(seed, index)
  const count = random.isLikely(0.2) ? 2 : 1
  const requests = Array.from({ length: count }, (_, number) =>
    // Most ids are new, and some are shared with other cases.
    toRequest(
      random,
      random.isLikely(0.9) ? `${1000 + index * 2 + number}` : `${random.below(50)}`,
    ),
  )
  const isSpliced = count === 2 && random.isLikely(0.2)
  const whole = isSpliced ? splice(random, requests) : Buffer.concat(requests)
  const bytes = random.isLikely(0.35) ? mutate(random, whole) : whole
  const sent = Buffer.concat([bytes, farewell])
  return { seed, index, bytes, pieces: random.isLikely(0.2) ? cut(random, sent) : [sent] }
}

/** Joins the beginning of one request and the end of another. */
function splice(random: Random, [first, second]: Buffer[]): Buffer {
  if (first === undefined || second === undefined) throw new Error('two requests are needed')
  return Buffer.concat([
    first.subarray(0, random.below(first.length)),
    second.subarray(random.below(second.length)),
  ])
}

const interesting = [...Buffer.from('\r\n\t :;,"/%{}[]0-\\')].concat(0, 0x7f, 0x80, 0xff)

function mutate(random: Random, bytes: Buffer): Buffer {
  let mutated = bytes
  for (let times = 1 + random.below(3); times > 0; times--) mutated = mutateOnce(random, mutated)
  return mutated
}

function mutateOnce(random: Random, bytes: Buffer): Buffer {
  if (bytes.length === 0) return bytes
  const at = random.below(bytes.length)
  const before = bytes.subarray(0, at)
  const after = bytes.subarray(at)
  const span = after.subarray(0, 1 + random.below(16))
  switch (random.below(6)) {
    case 0: {
      const flipped = Buffer.from(bytes)
      flipped[at] = (flipped[at] ?? 0) ^ (1 << random.below(8))
      return flipped
    }
    case 1:
      return Buffer.concat([before, Buffer.from([random.pick(interesting)]), after])
    case 2:
      return Buffer.concat([before, after.subarray(span.length)])
    case 3:
      return Buffer.concat([before, span, span, after.subarray(span.length)])
    case 4:
      return random.isLikely(0.3) ? before : Buffer.concat([before, after.subarray(1)])
    default: {
      const replaced = Buffer.from(bytes)
      replaced[at] = random.pick(interesting)
      return replaced
    }
  }
}

function cut(random: Random, bytes: Buffer): Buffer[] {
  const offsets = Array.from({ length: 1 + random.below(4) }, () => random.below(bytes.length))
  const ordered = [0, ...offsets.sort((one, other) => one - other), bytes.length]
  return ordered.slice(1).map((end, index) => bytes.subarray(ordered[index], end))
}
