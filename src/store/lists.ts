import { setImmediate as nextTurn } from 'node:timers/promises'
import { limits } from '../contract/limits.ts'
import type { Order } from '../contract/parameters.ts'
import { int64Bounds } from '../contract/schema.ts'
import type { StoredPlant } from '../contract/shapes.ts'
import type { ListQuery, PlantPage, Store } from './store.ts'

const { minimum, maximum } = int64Bounds

/** The first id that a list may have; undefined if none follows `after`. */
export function toFirstId(after: bigint | undefined, order: Order): bigint | undefined {
  const [first, last, step] = order === 'asc' ? [minimum, maximum, 1n] : [maximum, minimum, -1n]
  if (after === undefined) return first
  return after === last ? undefined : after + step
}

export interface SearchQuery extends ListQuery {
  /** A text that the name contains, both in upper case. */
  readonly name: string
}

/** A search reads and examines this many plants at a time. */
const plantsInPiece = 256
const takeTurn = buildLine()

/**
 * Searches by name without an index: examines a bounded number of plants, until `limit` of them
 * match.
 */
export async function searchPlants(store: Store, query: SearchQuery): Promise<PlantPage> {
  const { name, limit, ...rest } = query
  const matches = buildMatcher(name)
  const plants: StoredPlant[] = []
  let { after } = query
  let examined = 0
  let bytes = 0
  for (;;) {
    // One extra plant shows whether more follow.
    const wanted = Math.min(plantsInPiece, limits.examinedPlants + 1 - examined)
    const piece = await store.listPlants({ ...rest, after, limit: wanted })
    for (const plant of piece.plants) {
      bytes += Buffer.byteLength(plant.name) + Buffer.byteLength(plant.tag ?? '')
      const isFull = examined === limits.examinedPlants || plants.length === limit
      if (isFull || (bytes > limits.pageBytes && examined > 0)) return { plants, next: after }
      if (matches(plant.name)) plants.push(plant)
      after = plant.id
      examined++
    }
    if (piece.next !== undefined || piece.plants.length < wanted)
      return { plants, next: piece.next }
    await takeTurn()
  }
}

/**
 * Builds a test whether a name contains a text, both in upper case. Knuth-Morris-Pratt is linear,
 * whereas `includes` takes seconds on hostile input.
 */
export function buildMatcher(text: string): (name: string) => boolean {
  const sought = text.toUpperCase()
  const { length } = sought
  // For each number of matched units, how many remain matched after a mismatch.
  const fallbacks = new Uint16Array(length + 1)
  for (let at = 1, matched = 0; at < length; at++) {
    matched = advance(matched, sought.charCodeAt(at))
    fallbacks[at + 1] = matched
  }

  function advance(before: number, unit: number): number {
    let matched = before
    while (matched > 0 && sought.charCodeAt(matched) !== unit)
      matched = fallbacks[matched] as number
    return sought.charCodeAt(matched) === unit ? matched + 1 : matched
  }

  return (name) => {
    const upperName = name.toUpperCase()
    let matched = 0
    for (let at = 0; at < upperName.length && matched < length; at++) {
      matched = advance(matched, upperName.charCodeAt(at))
    }
    return matched === length
  }
}

/**
 * Builds a queue for long work that is done in pieces: await it between two pieces. One turn of the
 * event loop runs pieces for `limits.turnMs`, however many callers there are; the rest wait for the
 * next turn.
 */
export function buildLine(): () => Promise<void> {
  let end = Promise.resolve()
  let turnEndsAt = 0
  async function moveUp(): Promise<void> {
    if (performance.now() < turnEndsAt) return
    await nextTurn()
    turnEndsAt = performance.now() + limits.turnMs
  }
  return () => {
    end = end.then(moveUp)
    return end
  }
}
