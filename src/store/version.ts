import { randomFillSync } from 'node:crypto'
import type { NewPlant } from '../contract/shapes.ts'
import type { Version, VersionedPlant } from './store.ts'

const pool = new BigUint64Array(512)
let next = pool.length

/** A new version: 63 random bits from a pool, which saves system calls. */
export function randomVersion(): Version {
  if (next === pool.length) {
    randomFillSync(pool)
    next = 0
  }
  return (pool[next++] as bigint) >> 1n
}

/** A plant with its version. Object spread would take five times as long. */
export function toVersioned({ id, name, tag }: NewPlant, version: Version): VersionedPlant {
  return tag === undefined ? { id, name, version } : { id, name, tag, version }
}
