import { hash, randomFillSync } from 'node:crypto'
import type { NewPlant, Plant } from '../contract/shapes.ts'
import type { Change, Outcome } from './changes.ts'
import type { Store, Version, VersionedPlant } from './store.ts'

type PlantWrites = Pick<
  Store,
  'createPlant' | 'createPlantOnce' | 'replacePlant' | 'deletePlant' | 'importPlants'
>

/** Queues a change, which holds this much memory while it waits. */
type Write = <One extends Change>(change: One, bytes?: number) => Promise<Outcome<One>>

/** The writes of plants for both engines. Each becomes a change with a new version. */
export function buildPlantWrites(write: Write, newVersion: () => Version): PlantWrites {
  const toNew = (plant: NewPlant) => toVersioned(plant, newVersion())

  return {
    createPlant: (plant, tokenId) =>
      write({ kind: 'create', plant: toNew(plant), tokenId }, toHeldBytes(plant)),
    createPlantOnce(plant, key) {
      const use = { key, fingerprint: toFingerprint(plant), usedAt: Date.now() }
      const { tokenId } = key
      return write(
        { kind: 'create once', plant: toNew(plant), ...use, tokenId },
        toHeldBytes(plant),
      )
    },
    replacePlant: (plant, condition, tokenId) =>
      write({ kind: 'replace', plant: toNew(plant), condition, tokenId }, toHeldBytes(plant)),
    deletePlant: (id, condition, tokenId) => write({ kind: 'delete', id, condition, tokenId }),
    importPlants(plants, onConflict, tokenId) {
      const versioned = plants.map((plant) => ({ version: newVersion(), ...plant }))
      return write({ kind: 'import', plants: versioned, onConflict, tokenId }, sumBytes(plants))
    },
  }
}

/** Equal for two plants if and only if their id, name and tag are equal. */
function toFingerprint({ id, name, tag }: NewPlant): Uint8Array {
  const text = JSON.stringify([String(id), name, ...(tag === undefined ? [] : [tag])])
  return hash('sha256', text, 'buffer')
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

function sumBytes(plants: readonly Plant[]): number {
  return plants.reduce((sum, plant) => sum + toHeldBytes(plant), 0)
}
