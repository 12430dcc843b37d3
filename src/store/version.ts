import { randomFillSync } from 'node:crypto'
import type { Version } from './store.ts'

const pool = new BigUint64Array(512)
let next = pool.length

/** A version that nobody had before: 63 random bits, drawn from a pool because one system call for each would cost. */
export function randomVersion(): Version {
  if (next === pool.length) {
    randomFillSync(pool)
    next = 0
  }
  return (pool[next++] as bigint) >> 1n
}
