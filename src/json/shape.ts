import { Failure } from '../contract/errors.ts'
import type { BodyShape, ValueOf } from '../contract/schema.ts'
import { int64Range, isStorable } from '../contract/values.ts'
import { type Found, type Members, readMembers, toKind } from './members.ts'
import { plainNames, readPlainPlant } from './plain-plant.ts'

/** The rule of a shape for one member. */
interface Rule {
  readonly name: string
  readonly type: 'string' | 'integer'
  readonly isRequired: boolean
}

/**
 * Builds the reader of one shape, from JSON to a value of its type. Throws a `Failure` that names
 * the wrong member. Members in `alsoKept` are kept unchecked.
 */
export function buildShapeReader<Shape extends BodyShape>(
  shape: Shape,
  alsoKept: readonly string[] = [],
) {
  const rules = Object.entries(shape.properties).map(([name, { type }]): Rule => {
    return { name, type, isRequired: shape.required.includes(name) }
  })
  const names = [...rules.map(({ name }) => name), ...alsoKept]
  const mayBePlain = plainNames.every((name) => names.includes(name))

  return (text: string): ValueOf<Shape> => {
    const plain = mayBePlain ? readPlainPlant(text) : undefined
    const members: Members = plain ?? readMembers(text, names)
    for (const rule of rules) {
      if (!isRight(rule, members[rule.name])) throw misshapen(rules, members)
    }
    return members as ValueOf<Shape>
  }
}

function isRight({ type, isRequired }: Rule, found: Found | undefined): boolean {
  if (found === undefined) return !isRequired
  return type === 'string'
    ? typeof found === 'string' && isStorable(found)
    : typeof found === 'bigint'
}

/** Names the first missing member or, if none is missing, the first wrong one. */
function misshapen(rules: readonly Rule[], members: Members): Failure {
  const missing = rules.find(({ name, isRequired }) => isRequired && members[name] === undefined)
  if (missing !== undefined) {
    return new Failure(40003, `The member "${missing.name}" is missing.`)
  }
  const wrong = rules.find((rule) => !isRight(rule, members[rule.name])) as Rule
  const found = members[wrong.name] as Found
  return new Failure(
    40003,
    `The member "${wrong.name}" must be ${describeExpected(wrong.type, found)}.`,
  )
}

function describeExpected(type: Rule['type'], found: Found): string {
  const kind = toKind(found)
  if (type === 'integer') {
    if (kind === 'a string') return 'an integer, but is a string: write it without quotes'
    const fault = toFault(found)
    return fault.startsWith('too')
      ? `an integer ${int64Range}, but is ${fault}`
      : `an integer, but is ${fault}`
  }
  if (kind === 'null') return 'a string, but is null: leave it out if there is none'
  if (kind !== 'a string') return `a string, but is ${kind}`
  return 'a string without NUL characters and without lone surrogates'
}

/** Why a value is not an int64. */
function toFault(found: Found): string {
  const fault = typeof found === 'object' ? found.fault : undefined
  return fault ?? toKind(found)
}
