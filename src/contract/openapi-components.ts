import type { CarriedHeaders } from './carried-headers.ts'
import { type HeaderName, headers } from './headers.ts'
import type { ArrayShape, ObjectShape } from './schema.ts'

/** A part of the document. */
export type Json = Record<string, unknown>

/** The parts of the document that are written once and referenced elsewhere. */
export type Components = ReturnType<typeof buildComponents>

/** Builds an empty collection. A part is added under its name when it is first referenced. */
export function buildComponents() {
  const collected = { schemas: {}, headers: {}, responses: {} } as Record<Kind, Json>
  const shapes = new Map<string, ObjectShape | ArrayShape>()

  function refer(kind: Kind, name: string, build: () => Json): Json {
    collected[kind][name] ??= build()
    return { $ref: `#/components/${kind}/${name}` }
  }

  /** Refers to a shape by its title, and from it to the shapes of its parts. */
  function referToShape(shape: ObjectShape | ArrayShape): Json {
    const { title } = shape
    const known = shapes.get(title) ?? shape
    if (known !== shape && !isSame(known, shape)) {
      throw new Error(`Two different shapes of the contract have the title "${title}".`)
    }
    shapes.set(title, shape)
    return refer('schemas', title, () => toSchema({ ...shape, ...referToParts(shape) }) as Json)
  }

  function referToParts(shape: ObjectShape | ArrayShape): Json {
    if (shape.type === 'array') return { items: referToShape(shape.items) }
    const properties = Object.entries(shape.properties).map(([name, member]) => [
      name,
      referToMember(member),
    ])
    return { properties: Object.fromEntries(properties) }
  }

  function referToMember(member: ObjectShape['properties'][string]) {
    if (member.type === 'object') return referToShape(member)
    return member.type === 'array' ? { ...member, ...referToParts(member) } : member
  }

  function referToHeaders({ always, sometimes }: CarriedHeaders): Json {
    const required = always.map((name) => [
      name,
      refer('headers', name, () => toHeader(name, { required: true })),
    ])
    const optional = sometimes.map((name) => [
      name,
      refer('headers', `${name}-Optional`, () => toHeader(name)),
    ])
    return Object.fromEntries([...required, ...optional])
  }

  function referToResponse(name: string, build: () => Json): Json {
    return refer('responses', name, build)
  }

  return { collected, referToShape, referToHeaders, referToResponse }
}

type Kind = 'schemas' | 'headers' | 'responses'

function toHeader(name: HeaderName, options: { required?: true } = {}): Json {
  const { description, schema, example } = headers[name]
  return { description, ...options, schema, example }
}

function isSame(one: ObjectShape | ArrayShape, other: ObjectShape | ArrayShape): boolean {
  return JSON.stringify(toSchema(one)) === JSON.stringify(toSchema(other))
}

/** A schema as JSON. A bigint keeps all of its digits. */
export function toSchema(schema: unknown): unknown {
  if (typeof schema === 'bigint') return JSON.rawJSON(String(schema))
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return schema
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, toSchema(value)]))
}
