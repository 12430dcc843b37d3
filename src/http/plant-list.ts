import type { StoredPlant } from '../contract/shapes.ts'
import type { PlantQuery, Store, VersionedPlant } from '../store/store.ts'

/** One page: its plants, or their JSON in pieces where they are too large to hold, and where the next page begins. */
export interface Listing {
  readonly body: StoredPlant[] | AsyncIterable<string>
  /** The id after which the next page begins, while more plants follow. */
  readonly next: bigint | undefined
}

/** Reads a page. However large its plants are, no more than about a megabyte of them is held at once. */
export async function listPage(store: Store, query: PlantQuery): Promise<Listing> {
  // One more than asked for tells whether another page follows.
  const { plants, isWhole } = await store.listPlants({ ...query, limit: query.limit + 1 })
  if (isWhole) {
    const body = plants.slice(0, query.limit)
    return { body, next: plants.length > query.limit ? body.at(-1)?.id : undefined }
  }
  const ids = await store.listIds({ ...query, limit: query.limit + 1 })
  const last = ids[Math.min(ids.length, query.limit) - 1]
  const next = ids.length > query.limit ? last : undefined
  return { body: writeInPieces(store, query, plants, last), next }
}

async function* writeInPieces(
  store: Store,
  query: PlantQuery,
  first: readonly VersionedPlant[],
  last: bigint | undefined,
): AsyncGenerator<string> {
  let separator = '['
  let rest = query.limit
  let plants = first
  while (plants.length > 0 && rest > 0) {
    for (const plant of plants) {
      if (last !== undefined && plant.id > last) break
      if (rest-- === 0) break
      yield separator + toJson(plant)
      separator = ','
    }
    const after = plants.at(-1)?.id
    if (after === undefined || rest <= 0 || (last !== undefined && after >= last)) break
    plants = (await store.listPlants({ ...query, after, limit: rest })).plants
  }
  yield separator === '[' ? '[]' : ']'
}

function toJson({ id, name, tag }: StoredPlant): string {
  const end = tag === undefined ? '' : `,"tag":${JSON.stringify(tag)}`
  return `{"id":${id},"name":${JSON.stringify(name)}${end}}`
}
