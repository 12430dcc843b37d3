import { randomInt } from 'node:crypto'

/** A generator of random numbers that repeats itself for the same seed. */
export type Random = ReturnType<typeof buildRandom>

/** The seed of this run. FAULTS_SEED repeats a run that failed. */
export const seed = Number(process.env.FAULTS_SEED ?? randomInt(2 ** 32))

/** Builds the generator of one case, which depends only on the seed and its index. */
export function buildRandom(seed: number, index: number) {
  let state = mix(Math.imul(seed, 0x9e3779b1) ^ mix(index + 1))

  // Mulberry32: short, fast, and even enough here.
  function next(): number {
    state = (state + 0x6d2b79f5) | 0
    return mix(state) / 2 ** 32
  }

  /** An integer from 0 to `bound - 1`. */
  const below = (bound: number) => Math.floor(next() * bound)
  return {
    below,
    pick: <Item>(items: readonly Item[]) => items[below(items.length)] as Item,
    /** True with this probability. */
    isLikely: (share: number) => next() < share,
    shuffle<Item>(items: Item[]): Item[] {
      for (let last = items.length - 1; last > 0; last--) {
        const other = below(last + 1)
        const item = items[last] as Item
        items[last] = items[other] as Item
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
