import type { Plant, StoredPlant } from '../contract/shapes.ts'

declare global {
  interface JSON {
    /** Text that `stringify` writes as it is. Node.js has it, the types of the language do not yet. */
    rawJSON(text: string): unknown
  }
}

/** A plant as JSON, on one line: the id, if it has one, in all of its digits. */
export function toJson(plant: Plant | StoredPlant): string {
  return JSON.stringify(toWritable(plant))
}

/** Plants as a JSON array. In one go: V8 is at its fastest then. */
export function toJsonArray(plants: readonly StoredPlant[]): string {
  return JSON.stringify(plants.map(toWritable))
}

/** The members of a plant that are written, whatever else it has; what is undefined is left out. */
function toWritable(plant: Plant | StoredPlant) {
  const { name, tag } = plant
  return 'id' in plant ? { id: toWritableId(plant.id), name, tag } : { name, tag }
}

const largestSafe = BigInt(Number.MAX_SAFE_INTEGER)

function toWritableId(id: bigint): unknown {
  return id <= largestSafe && id >= -largestSafe ? Number(id) : JSON.rawJSON(String(id))
}
