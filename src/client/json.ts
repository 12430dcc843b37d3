import type { NewPlant, Plant } from './types.ts'

/** A plant as JSON.parse leaves it: the id is a number, rounded if it is beyond 2^53. */
interface Parsed {
  id?: unknown
}

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown
type Parse = (text: string, reviver: Reviver) => unknown

/** A number as the value of a member `id`. Unescaped quotes never occur inside a string of JSON. */
const ids = /([{,]\s*"id"\s*:\s*)(-?\d+)(?=\s*[,}])/g

/**
 * Parses JSON and makes the ids of its plants exact bigints. `toPlants` finds the plants in the
 * value. Only a text with an id that a number cannot hold is parsed a second time.
 */
export function parse<Value>(text: string, toPlants: (value: Value) => readonly Parsed[]): Value {
  const value = JSON.parse(text) as Value
  for (const plant of toPlants(value)) {
    if (plant.id === undefined) continue
    if (!Number.isSafeInteger(plant.id)) return parseExactly(text) as Value
    plant.id = BigInt(plant.id as number)
  }
  return value
}

/** Parses JSON so that every member `id` with an integer is a bigint. */
function parseExactly(text: string): unknown {
  if (!hasSource()) return parseMarked(text.replace(ids, '$1"#$2"'))
  return (JSON.parse as Parse)(text, (key, value, context) =>
    key === 'id' && typeof value === 'number' ? BigInt(context?.source ?? '') : value,
  )
}

/** Whether JSON.parse gives the source text of a number, as current runtimes do. */
function hasSource(): boolean {
  return (JSON.parse as Parse)('1', (_key, _value, context) => context?.source) === '1'
}

function parseMarked(text: string): unknown {
  return JSON.parse(text, (key, value) =>
    key === 'id' && typeof value === 'string' && value.startsWith('#')
      ? BigInt(value.slice(1))
      : value,
  )
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
