import { hash, randomFillSync } from 'node:crypto'
import type { NewPlant } from '../contract/shapes.ts'
import type { Change, Outcome } from './changes.ts'
import type { Store, Version, VersionedPlant } from './store.ts'

type PlantWrites = Pick<
  Store,
  'createPlant' | 'createPlantOnce' | 'replacePlant' | 'deletePlant' | 'importPlants'
>

/** Queues a change. */
type Write = <One extends Change>(change: One) => Promise<Outcome<One>>

/** The writes of plants for both engines. Each becomes a change with a new version. */
export function buildPlantWrites(write: Write, newVersion: () => Version): PlantWrites {
  const toNew = (plant: NewPlant) => toVersioned(plant, newVersion())

  return {
    createPlant: (plant, tokenId) => write({ kind: 'create', plant: toNew(plant), tokenId }),
    createPlantOnce(plant, key) {
      const use = { key, fingerprint: toFingerprint(plant), usedAt: Date.now() }
      const { tokenId } = key
      return write({ kind: 'create once', plant: toNew(plant), ...use, tokenId })
    },
    replacePlant: (plant, condition, tokenId) =>
      write({ kind: 'replace', plant: toNew(plant), condition, tokenId }),
    deletePlant: (id, condition, tokenId) => write({ kind: 'delete', id, condition, tokenId }),
    importPlants(plants, onConflict, tokenId) {
      const versioned = plants.map((plant) => ({ version: newVersion(), ...plant }))
      return write({ kind: 'import', plants: versioned, onConflict, tokenId })
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
