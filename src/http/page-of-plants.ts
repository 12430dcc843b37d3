import { limits } from '../contract/limits.ts'
import type { StoredPlant } from '../contract/shapes.ts'
import { toJson } from '../json/to-json.ts'
import { type SearchQuery, searchPlants } from '../store/lists.ts'
import type { ListQuery, Store } from '../store/store.ts'

/** One page of plants. */
interface Listing {
  readonly plants: StoredPlant[]
  /** The id after which the next page begins, while more plants follow. */
  readonly next: bigint | undefined
}

/** Reads a page: up to the limit or 1 MiB of JSON, but at least one plant, however large. */
export function listPage(
  store: Store,
  { name, ...query }: ListQuery & { readonly name: string | undefined },
): Promise<Listing> {
  return name === undefined ? listAny(store, query) : listFindings(store, { ...query, name })
}

async function listAny(store: Store, query: ListQuery): Promise<Listing> {
  // One more than the limit, to know whether another page follows.
  const found = await store.listPlants({ ...query, limit: query.limit + 1 })
  const plants = takePage(found.plants, query.limit)
  const isLast = found.isWhole && plants.length === found.plants.length
  return { plants, next: isLast ? undefined : plants.at(-1)?.id }
}

async function listFindings(store: Store, query: SearchQuery): Promise<Listing> {
  const found = await searchPlants(store, query)
  const plants = takePage(found.plants, query.limit)
  const isCut = plants.length < found.plants.length
  return { plants, next: isCut ? plants.at(-1)?.id : found.next }
}

/** The most bytes of JSON that a UTF-16 code unit takes, and a plant without its texts. */
const maxUnitBytes = 6
const maxFrameBytes = 64

/** As many of the first plants as fit into a page of JSON. */
function takePage(plants: readonly StoredPlant[], limit: number): StoredPlant[] {
  const page = plants.slice(0, limit)
  let units = 0
  for (const { name, tag = '' } of page) units += name.length + tag.length
  if (units * maxUnitBytes + page.length * maxFrameBytes <= limits.pageBytes) return page
  let bytes = 0
  const end = page.findIndex((plant) => {
    bytes += Buffer.byteLength(toJson(plant)) + 1
    return bytes > limits.pageBytes
  })
  return end === -1 ? page : page.slice(0, Math.max(end, 1))
}
