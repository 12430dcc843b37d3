import { randomInt } from 'node:crypto'

/** A generator of random numbers that repeats itself for the same seed. */
export interface Random {
  /** An integer from 0 to `bound - 1`. */
  below(bound: number): number
  pick<Item>(items: readonly Item[]): Item
  /** True with this probability. */
  isLikely(share: number): boolean
  shuffle<Item>(items: Item[]): Item[]
}

/** The seed of this run. FAULTS_SEED repeats a run that failed. */
export const seed = Number(process.env.FAULTS_SEED ?? randomInt(2 ** 32))

/** Builds the generator of one case, which depends only on the seed and its index. */
export function buildRandom(seed: number, index: number): Random {
  let state = mix(Math.imul(seed, 0x9e3779b1) ^ mix(index + 1))

  // Mulberry32: short, fast, and even enough here.
  function next(): number {
    state = (state + 0x6d2b79f5) | 0
    return mix(state) / 2 ** 32
  }

  const below = (bound: number) => Math.floor(next() * bound)
  return {
    below,
    pick: (items) => items[below(items.length)] as (typeof items)[number],
    isLikely: (share) => next() < share,
    shuffle(items) {
      for (let last = items.length - 1; last > 0; last--) {
        const other = below(last + 1)
        const item = items[last] as (typeof items)[number]
        items[last] = items[other] as (typeof items)[number]
        items[other] = item
      }
      return items
    },
  }
}

function mix(value: number): number {
  let bits = Math.imul(value ^ (value >>> 15), value | 1)
  bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
  return (bits ^ (bits >>> 14)) >>> 0
}
