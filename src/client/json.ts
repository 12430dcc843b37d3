import type { NewPlant, Plant } from './types.ts'

/** A plant as JSON.parse leaves it: the id is a number, rounded if it is beyond 2^53. */
interface Parsed {
  id?: unknown
}

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown
type Parse = (text: string, reviver: Reviver) => unknown

/** An id that a number may not hold: one of more than 15 digits. */
const longId = /"id"\s*:\s*-?\d{16}/
/** The ids of a text. Quotes inside a string of JSON are escaped, so no match is in a string. */
const ids = /([{,]\s*"id"\s*:\s*)(-?\d+)(?=\s*[,}])/g
/** In longer texts, quotes around the ids are several times faster than a reviver. */
const mostRevivedCharacters = 4_096

/**
 * Parses JSON in which the ids of plants become exact bigints. `toPlants` finds the plants in the
 * parsed value.
 */
export function parse<Value>(text: string, toPlants: (value: Value) => readonly Parsed[]): Value {
  const value = parseIds(text) as Value
  for (const plant of toPlants(value)) {
    const { id } = plant
    if (typeof id === 'string' || Number.isSafeInteger(id)) plant.id = BigInt(id as string | number)
  }
  return value
}

/** Parses JSON whose long ids become bigints or, if the text is large, strings. */
function parseIds(text: string): unknown {
  if (!longId.test(text)) return JSON.parse(text)
  if (text.length > mostRevivedCharacters || !hasSource()) {
    return JSON.parse(text.replace(ids, '$1"$2"'))
  }
  return (JSON.parse as Parse)(text, (key, value, context) =>
    key === 'id' && typeof value === 'number' ? BigInt(context?.source ?? '') : value,
  )
}

/** Whether JSON.parse passes on the source text of a number, as current runtimes do. */
function hasSource(): boolean {
  return (JSON.parse as Parse)('1', (_key, _value, context) => context?.source) === '1'
}

/** A plant as JSON, with every digit of its id. */
export function toNewPlantJson({ id, name, tag }: NewPlant): string {
  return JSON.stringify({ id: 0, name, tag }).replace('0', `${requireId(id)}`)
}

export function toPlantJson({ name, tag }: Plant): string {
  return JSON.stringify({ name, tag })
}

/** Refuses ids that are numbers: one beyond 2^53 would already name another plant. */
export function requireId(id: bigint): bigint {
  if (typeof id === 'bigint') return id
  throw new TypeError(`id must be a bigint, such as 1n, but is a ${typeof id}.`)
}
