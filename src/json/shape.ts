import { Failure } from '../contract/errors.ts'
import { int64Range } from '../contract/int64.ts'
import type { BodyShape, ValueOf } from '../contract/schema.ts'
import { isStorable } from '../contract/text.ts'

/** What a shape says of one member. */
interface Member {
  readonly name: string
  readonly type: 'string' | 'integer'
  readonly isRequired: boolean
}

/** Builds the check of one shape: the value as the shape's type, or a `Failure` that names the member at fault. */
export function buildShapeCheck<Shape extends BodyShape>(shape: Shape) {
  const members = Object.entries(shape.properties).map(([name, { type }]): Member => {
    return { name, type, isRequired: shape.required.includes(name) }
  })

  return (value: unknown): ValueOf<Shape> => {
    if (!isObject(value))
      throw misshapen(`A JSON object is expected, but this is ${kindOf(value)}.`)
    for (const member of members) {
      if (!isRight(member, value[member.name])) throw misshapen(explain(members, value))
    }
    return value as ValueOf<Shape>
  }
}

function isRight({ type, isRequired }: Member, value: unknown): boolean {
  if (value === undefined) return !isRequired
  // The parser makes a bigint of every integer within int64, and of nothing else.
  return type === 'string'
    ? typeof value === 'string' && isStorable(value)
    : typeof value === 'bigint'
}

/** What is wrong: the first member that is missing or, if all are there, the first that is not right. */
function explain(members: readonly Member[], object: Record<string, unknown>): string {
  const missing = members.find(({ name, isRequired }) => isRequired && object[name] === undefined)
  if (missing !== undefined) return `The member "${missing.name}" is missing.`
  const wrong = members.find((member) => !isRight(member, object[member.name])) as Member
  const value = object[wrong.name]
  if (typeof value === 'string' && wrong.type === 'string') {
    return `The member "${wrong.name}" must be a string without NUL characters and without lone surrogates.`
  }
  return `The member "${wrong.name}" must be ${expectations[wrong.type]}, but is ${kindOf(value)}.`
}

const expectations = { string: 'a string', integer: `an integer ${int64Range}` }

function misshapen(message: string): Failure {
  return new Failure(40003, message)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
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
