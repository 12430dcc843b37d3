import { limits } from '../contract/limits.ts'
import type { Order } from '../contract/parameters.ts'
import type { StoredPlant } from '../contract/shapes.ts'
import type { ListQuery, Store } from './store.ts'

const smallestId = -(2n ** 63n)
const largestId = 2n ** 63n - 1n

/** The first id that a list may have; undefined if none follows `after`. */
export function toFirstId(after: bigint | undefined, order: Order): bigint | undefined {
  const [first, last, step] =
    order === 'asc' ? [smallestId, largestId, 1n] : [largestId, smallestId, -1n]
  if (after === undefined) return first
  return after === last ? undefined : after + step
}

export interface SearchQuery extends ListQuery {
  /** A text that the name contains, in upper or lower case. */
  readonly name: string
}

/** The plants that were found among those examined. */
export interface Findings {
  readonly plants: readonly StoredPlant[]
  /** The last plant examined, while others may follow. */
  readonly next: bigint | undefined
}

/**
 * Searches the next plants by name, without an index: a bounded number of them, up to the limit of
 * those that match.
 */
export async function searchPlants(store: Store, query: SearchQuery): Promise<Findings> {
  const { name, limit, ...rest } = query
  // One more than is examined tells whether others follow.
  const page = await store.listPlants({ ...rest, limit: limits.examinedPlants + 1 })
  const matches = buildMatcher(name)
  const plants: StoredPlant[] = []
  let examined = 0
  for (const plant of page.plants.slice(0, limits.examinedPlants)) {
    if (plants.length === limit) break
    if (matches(plant.name)) plants.push(plant)
    examined++
  }
  const isLast = page.isWhole && examined === page.plants.length
  return { plants, next: isLast ? undefined : page.plants[examined - 1]?.id }
}

/**
 * Tells whether a name contains a text, by the algorithm of Knuth, Morris and Pratt: its time is
 * linear, whereas `includes` takes seconds for texts and names that were made to be slow.
 */
export function buildMatcher(text: string): (name: string) => boolean {
  const lowerText = text.toLowerCase()
  const { length } = lowerText
  const sought = Uint16Array.from({ length }, (_, at) => toUnit(lowerText, at))
  // For each number of units that match, how many still do if the next one does not.
  const fallbacks = new Uint16Array(length + 1)
  for (let at = 1, matched = 0; at < length; at++) {
    matched = goOn(matched, sought[at] as number)
    fallbacks[at + 1] = matched
  }

  function goOn(before: number, unit: number): number {
    let matched = before
    while (matched > 0 && sought[matched] !== unit) matched = fallbacks[matched] as number
    return sought[matched] === unit ? matched + 1 : matched
  }

  return (name) => {
    const lowerName = name.toLowerCase()
    let matched = 0
    for (let at = 0; at < lowerName.length && matched < length; at++) {
      matched = goOn(matched, toUnit(lowerName, at))
    }
    return matched === length
  }
}

const sigma = 0x3c3
const finalSigma = 0x3c2

/** A unit of text in lower case, in which only a sigma depends on the characters around it. */
function toUnit(lower: string, at: number): number {
  const unit = lower.charCodeAt(at)
  return unit === finalSigma ? sigma : unit
}
