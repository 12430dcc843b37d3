import { randomFillSync } from 'node:crypto'
import type { NewPlant, Plant } from '../contract/shapes.ts'
import { type Change, type Outcome, toCreateOnce, toImport } from './changes.ts'
import { followTokenId, type Store, type Version, type VersionedPlant } from './store.ts'

type PlantWrites = Pick<
  Store,
  | 'createPlant'
  | 'createPlantOnce'
  | 'replacePlant'
  | 'deletePlant'
  | 'importPlants'
  | 'followChanges'
>

/** Queues a change, which holds this much memory while it waits. */
type Write = <One extends Change>(change: One, bytes?: number) => Promise<Outcome<One>>

/** The writes of plants for both engines. Each becomes a change with a new version. */
export function buildPlantWrites(write: Write, newVersion: () => Version): PlantWrites {
  return {
    createPlant: (plant, tokenId) =>
      write(
        { kind: 'create', plant: toVersioned(plant, newVersion()), tokenId },
        toHeldBytes(plant),
      ),
    createPlantOnce: (plant, key) =>
      write(toCreateOnce(toVersioned(plant, newVersion()), key), toHeldBytes(plant)),
    replacePlant(plant, condition, tokenId) {
      const versioned = toVersioned(plant, newVersion())
      return write({ kind: 'replace', plant: versioned, condition, tokenId }, toHeldBytes(plant))
    },
    deletePlant: (id, condition, tokenId) => write({ kind: 'delete', id, condition, tokenId }),
    importPlants(plants, onConflict, tokenId) {
      const bytes = plants.reduce((sum, plant) => sum + toHeldBytes(plant), 0)
      return write(toImport(plants, onConflict, newVersion, tokenId), bytes)
    },
    followChanges({ plants, removed, source, position, after }) {
      const versioned = plants.map((plant) => toVersioned(plant, newVersion()))
      const bytes = plants.reduce(
        (sum, plant) => sum + toHeldBytes(plant),
        removed.length * rowBytes,
      )
      const followed = { source, position, revision: after }
      const change = { plants: versioned, removed, followed, tokenId: followTokenId }
      return write({ kind: 'follow', ...change }, bytes)
    },
  }
}

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

/** The memory that a row holds in addition to the text of its plant. */
export const rowBytes = 64

/** How much memory a plant holds while it waits. */
function toHeldBytes({ name, tag = '' }: Plant): number {
  return rowBytes + 2 * (name.length + tag.length)
}
