import type { ErrorNumber } from './errors.ts'
import type { Format } from './formats.ts'
import type { HeaderName } from './headers.ts'
import type { ParameterName } from './parameters.ts'
import type { ArrayShape, BodyShape, ObjectShape } from './schema.ts'
import type { Scope } from './scopes.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** A body in JSON. */
export interface JsonBody<Shape extends ObjectShape | ArrayShape = ObjectShape | ArrayShape> {
  readonly mediaType: 'application/json' | `application/${string}+json`
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
  readonly headers: readonly HeaderName[]
  readonly optionalHeaders?: readonly HeaderName[]
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
export interface HealthCheck {
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly successes: Readonly<Record<number, Success>>
  /** The failures of this check alone; `failuresOfCheck` adds those of the protocol. */
  readonly failures: readonly ErrorNumber[]
}
