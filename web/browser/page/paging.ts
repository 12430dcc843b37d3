import type { PlantStore } from '../../../client/index.ts'
import { int64Bounds } from '../../../src/contract/schema.ts'
import type { Plant } from './rows.ts'

/** The largest page that the service answers. */
const maxPage = 1_000

/** A part of the list, and whether nothing lies beyond it. */
export interface Part {
  readonly plants: readonly Plant[]
  readonly isLast: boolean
}

export interface Place {
  readonly tag: string | undefined
  readonly signal: AbortSignal
}

/** Lists the plants after an id, or the first ones. */
export async function listAfter(
  client: PlantStore,
  after: bigint | undefined,
  count: number,
  { tag, signal }: Place,
): Promise<Part> {
  const plants: Plant[] = []
  const options = { ...(tag !== undefined && { tag }), ...(after !== undefined && { after }) }
  for await (const plant of client.list({ ...options, pageSize: count, signal })) {
    plants.push(plant)
    if (plants.length === count) return { plants, isLast: false }
  }
  return { plants, isLast: true }
}

/** Lists the plants from an id on, or the first ones. */
export function listFrom(
  client: PlantStore,
  from: bigint | undefined,
  count: number,
  place: Place,
): Promise<Part> {
  const isFirst = from === undefined || from === int64Bounds.minimum
  return listAfter(client, isFirst ? undefined : from - 1n, count, place)
}

/**
 * Lists plants right before an id. The service lists upwards only, so this looks for an id below
 * that has some, but fewer than a page, plants between itself and the given one: first in growing
 * steps, then by halves. Where ids are dense, the first try finds it.
 */
export async function listBefore(
  client: PlantStore,
  before: bigint,
  count: number,
  place: Place,
): Promise<Part> {
  const least = int64Bounds.minimum
  let sparse = before
  let dense: bigint | undefined
  for (let step = BigInt(count); ; step *= 256n) {
    const start = dense === undefined ? before - step : (dense + sparse) / 2n
    const isLowest = start <= least
    const after = isLowest ? undefined : start
    const { plants } = await listAfter(client, after, maxPage, place)
    const found = plants.filter(({ id }) => id < before)
    const isFull = found.length === maxPage
    if (isLowest && !isFull) return { plants: found, isLast: true }
    if (isFull) dense = isLowest ? least : start
    else if (found.length > 0) return { plants: found, isLast: false }
    else sparse = start
  }
}
