import type { Static, TObject } from 'typebox'
import { Compile } from 'typebox/compile'
import { Failure } from '../contract/errors.ts'
import { int64Range } from '../contract/int64.ts'

/** The first thing that a value lacks, as the validator says it. */
interface Violation {
  readonly keyword: string
  readonly instancePath: string
  readonly params: object
  readonly message: string
}

/** Builds the check of one shape: the value as the shape's type, or a `Failure` that names the member at fault. */
export function buildShapeCheck<Shape extends TObject>(shape: Shape) {
  const validator = Compile(shape)
  return (value: unknown): Static<Shape> => {
    if (validator.Check(value)) return value
    const [violation] = validator.Errors(value) as Violation[]
    throw new Failure(40003, explain(violation, value))
  }
}

function explain(violation: Violation | undefined, value: unknown): string {
  if (violation === undefined) return 'This does not have the expected shape.'
  const { keyword, params, instancePath, message } = violation
  if ('requiredProperties' in params) {
    const [missing] = params.requiredProperties as string[]
    return `The member "${missing}" is missing.`
  }
  if (instancePath === '') return `A JSON object is expected, but this is ${kindOf(value)}.`
  const name = instancePath.slice(1)
  if (keyword !== 'type') return `The member "${name}" ${message}.`
  const { type } = params as { type: string }
  const actual = (value as Record<string, unknown>)[name]
  return `The member "${name}" must be ${expectations[type] ?? type}, but is ${kindOf(actual)}.`
}

const expectations: Record<string, string> = {
  string: 'a string',
  bigint: `an integer ${int64Range}`,
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  return kinds[typeof value] ?? 'something else'
}

const kinds: Record<string, string> = {
  bigint: 'an integer',
  number: 'another number',
  string: 'a string',
  boolean: 'a boolean',
  object: 'an object',
}
