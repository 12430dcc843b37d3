import { setImmediate as nextTurn } from 'node:timers/promises'
import { formats, jsonContentType } from '../contract/formats.ts'
import type { StoredPlant } from '../contract/shapes.ts'
import { toJson } from '../json/write.ts'
import type { PlantQuery, Store } from '../store/store.ts'
import { type ExportQuery, writePlants } from '../transfer/write.ts'
import type { StreamedBody } from './streamed-body.ts'

/** One page: its plants, or their JSON in pieces where they are too large to hold, and where the next page begins. */
export interface Listing {
  readonly body: StoredPlant[] | StreamedBody
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
  const page = ids.slice(0, query.limit)
  const next = ids.length > query.limit ? page.at(-1) : undefined
  const pieces = inTurns(writeInPieces(store, query, new Set(page)))
  return {
    body: { contentType: jsonContentType, isCompressible: false, pieces, async close() {} },
    next,
  }
}

/** Opens every plant that follows, as they are at this moment, in another form than pages. */
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

/** A client that takes everything at once shall not keep the others waiting: they get their turn between two pieces. */
async function* inTurns(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const piece of pieces) {
    yield piece
    await nextTurn()
  }
}

/** The plants with these ids, as far as they are still there: the next page is settled, so no other may take their place. */
async function* writeInPieces(
  store: Store,
  query: PlantQuery,
  ids: ReadonlySet<bigint>,
): AsyncGenerator<string> {
  const last = [...ids].at(-1)
  let after = query.after
  let separator = '['
  while (last !== undefined && (after === undefined || after < last)) {
    const { plants } = await store.listPlants({ ...query, after, limit: query.limit })
    for (const plant of plants.filter(({ id }) => ids.has(id))) {
      yield separator + toJson(plant)
      separator = ','
    }
    const reached = plants.at(-1)?.id
    if (reached === undefined) break
    after = reached
  }
  yield separator === '[' ? '[]' : ']'
}
