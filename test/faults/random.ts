import { randomInt } from 'node:crypto'

/** Numbers that look random and are the same for the same seed. */
export interface Random {
  /** A whole number from 0 up to, and without, this bound. */
  below(bound: number): number
  isLikely(share: number): boolean
  shuffle<Value>(values: Value[]): Value[]
}

/** The seed of this run: FAULTS_SEED repeats one that failed. */
export const seed = Number(process.env.FAULTS_SEED ?? randomInt(2 ** 32))

/** The generator "mulberry32", from a seed and a number for each use of it. */
export function buildRandom(use: number): Random {
  let state = (seed + Math.imul(use, 0x9e3779b9)) | 0

  function next(): number {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  const below = (bound: number) => Math.floor(next() * bound)
  return {
    below,
    isLikely: (share) => next() < share,
    shuffle(values) {
      for (let last = values.length - 1; last > 0; last--) {
        const other = below(last + 1)
        const value = values[last] as (typeof values)[number]
        values[last] = values[other] as (typeof values)[number]
        values[other] = value
      }
      return values
    },
  }
}
