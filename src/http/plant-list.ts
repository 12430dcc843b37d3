import { setImmediate as nextTurn } from 'node:timers/promises'
import { formats, jsonContentType } from '../contract/formats.ts'
import { limits } from '../contract/limits.ts'
import type { StoredPlant } from '../contract/shapes.ts'
import { toJson } from '../json/write.ts'
import type { PlantQuery, Store } from '../store/store.ts'
import { type ExportQuery, writePlants } from '../transfer/write.ts'
import type { StreamedBody } from './streamed-body.ts'

/** One page: its plants, or a streamed body where they are too large to hold. */
export interface Listing {
  readonly body: StoredPlant[] | StreamedBody
  /** The id after which the next page begins, while more plants follow. */
  readonly next: bigint | undefined
}

/** Reads a page. However large its plants are, about a megabyte of them is held at once. */
export async function listPage(store: Store, query: PlantQuery): Promise<Listing> {
  // One more than the limit tells whether another page follows.
  const { plants, isWhole } = await store.listPlants({ ...query, limit: query.limit + 1 })
  if (isWhole) {
    const page = plants.slice(0, query.limit)
    const next = plants.length > query.limit ? page.at(-1)?.id : undefined
    return { body: page, next }
  }
  const ids = await store.listIds({ ...query, limit: query.limit + 1 })
  const page = ids.slice(0, query.limit)
  const next = ids.length > query.limit ? page.at(-1) : undefined
  return { body: toStreamed(toArray(readLarge(store, query, new Set(page)))), next }
}

/** Streams a page whose JSON is too large to hold. */
export function streamLarge(page: readonly StoredPlant[]): StreamedBody | undefined {
  return isLargeAsJson(page) ? toStreamed(toArray(page)) : undefined
}

/** Opens an export: every plant that the query finds, as it is at this moment. */
export async function openExport(
  store: Store,
  tokenId: string,
  query: ExportQuery,
): Promise<StreamedBody> {
  const snapshot = await store.openSnapshot(tokenId)
  return {
    contentType: formats[query.format].contentType,
    isCompressible: true,
    pieces: inTurns(writePlants(snapshot, query)),
    close: snapshot.close,
  }
}

function toStreamed(pieces: AsyncIterable<string>): StreamedBody {
  return {
    contentType: jsonContentType,
    isCompressible: false,
    pieces: inTurns(pieces),
    async close() {},
  }
}

/** Other requests get their turn between two pieces, however fast the client reads. */
async function* inTurns(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const piece of pieces) {
    yield piece
    await nextTurn()
  }
}

/** A control character of one byte takes six in JSON, so the JSON of a page may be too large. */
const maxEscape = 6

function isLargeAsJson(page: readonly StoredPlant[]): boolean {
  let length = 0
  for (const { name, tag = '' } of page) length += name.length + tag.length
  if (length * maxEscape <= limits.pageBytes) return false
  let jsonLength = 0
  for (const plant of page) jsonLength += toJson(plant).length
  return jsonLength > limits.pageBytes
}

async function* toArray(
  plants: Iterable<StoredPlant> | AsyncIterable<StoredPlant>,
): AsyncGenerator<string> {
  let separator = '['
  for await (const plant of plants) {
    yield separator + toJson(plant)
    separator = ','
  }
  yield separator === '[' ? '[]' : ']'
}

/** The plants with these ids that are still there. The next page is fixed: no others may follow. */
async function* readLarge(
  store: Store,
  query: PlantQuery,
  ids: ReadonlySet<bigint>,
): AsyncGenerator<StoredPlant> {
  const last = [...ids].at(-1)
  let after = query.after
  while (last !== undefined && (after === undefined || after < last)) {
    const { plants } = await store.listPlants({ ...query, after, limit: query.limit })
    for (const plant of plants) if (ids.has(plant.id)) yield plant
    const reached = plants.at(-1)?.id
    if (reached === undefined) break
    after = reached
  }
}
