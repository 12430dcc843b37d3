import { randomFillSync } from 'node:crypto'
import type { NewPlant } from '../contract/shapes.ts'
import type { Version, VersionedPlant } from './store.ts'

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

/** A plant with its version. Member by member: to copy whatever there is takes five times as long. */
export function toVersioned({ id, name, tag }: NewPlant, version: Version): VersionedPlant {
  return tag === undefined ? { id, name, version } : { id, name, tag, version }
}
