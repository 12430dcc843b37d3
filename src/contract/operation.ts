import type { ErrorNumber } from './errors.ts'
import type { Format } from './formats.ts'
import type { Carried } from './headers.ts'
import type { ParameterName } from './parameters.ts'
import type { ArrayShape, BodyShape, ObjectShape } from './schema.ts'
import type { Scope } from './scopes.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** A body in JSON. */
export interface JsonBody<Shape extends ObjectShape | ArrayShape = ObjectShape | ArrayShape> {
  readonly mediaType: 'application/json'
  readonly shape: Shape
}

/** A body in any other media type, described by a text. */
export interface TextBody {
  readonly mediaType: string
  readonly description: string
  /** The shape of what the text carries. Generated clients then know its type. */
  readonly carries?: ArrayShape
  /** `binary` keeps generated clients from parsing the text as JSON. */
  readonly schemaFormat?: 'binary'
  readonly example?: string
}

/** A file of plants as a request body of any length, read as a stream. */
export interface FileBody extends TextBody {
  readonly format: Format
}

/** A body of type `application/json`. */
export function json<const Shape extends ObjectShape | ArrayShape>(shape: Shape) {
  return { mediaType: 'application/json', shape } as const
}

/** One kind of success. The headers that every answer carries are not repeated here. */
export interface Success {
  readonly description: string
  readonly body?: JsonBody | TextBody
  /** Other media types of the same body, for clients that prefer one of them (`Accept`). */
  readonly alternatives?: readonly TextBody[]
  readonly headers: Carried
}

/** The contract of an operation. `{id}` in a path stands for the id of a plant. */
export interface Operation {
  readonly method: Method
  readonly path: string
  readonly scope: Scope
  readonly summary: string
  readonly description: string
  /** Whether it is served while the write queue is full, as web pages are. */
  readonly isServedUnderLoad?: true
  readonly parameters: readonly ParameterName[]
  readonly body?: JsonBody<BodyShape> | FileBody
  readonly successes: Readonly<Record<number, Success>>
  /** The failures of this operation alone; `failuresOf` adds those that it shares with others. */
  readonly failures: readonly ErrorNumber[]
}

/** A check that needs no token, because its answer reveals nothing about the stored plants. */
export type HealthCheck = Omit<Operation, 'scope'> & { readonly scope?: never }

/** The failures of HTTP and of the connection, on every path, before a request is routed. */
export const protocolFailures: readonly ErrorNumber[] = [
  40000, 40800, 41400, 41700, 43100, 50300, 50500,
]
const operationFailures: readonly ErrorNumber[] = [
  40100, 40101, 40102, 40300, 42900, 50000, 50301, 50302,
]
const bodyFailures: readonly ErrorNumber[] = [40001, 40002, 40003, 41500]
const fileFailures: readonly ErrorNumber[] = [40002, 41500]
/** Every write reads a body, even if only to discard it. */
const writeFailures: readonly ErrorNumber[] = [41300, 50400, 50700]

/** Every failure that an operation can answer, in ascending order. */
export function failuresOf(operation: Operation | HealthCheck): ErrorNumber[] {
  const { method, path, scope, parameters, body, failures } = operation
  const numbers = [
    ...protocolFailures,
    ...(scope ? operationFailures : []),
    ...(path.includes('{id}') ? [40004 as const] : []),
    ...(parameters.length > 0 ? [40005 as const] : []),
    ...(parameters.includes('If-None-Match') ? [41200 as const] : []),
    ...(body ? ('shape' in body ? bodyFailures : fileFailures) : []),
    ...(method === 'GET' ? [] : writeFailures),
    ...failures,
  ]
  return numbers.sort((a, b) => a - b)
}
