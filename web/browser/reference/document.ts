/** The parts of an OpenAPI document that the reference shows. */
export interface ApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>
  readonly webhooks?: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, ApiSchema>>
    readonly parameters: Readonly<Record<string, ApiParameter>>
    readonly headers: Readonly<Record<string, ApiHeader>>
    readonly responses: Readonly<Record<string, ApiResponse>>
  }
}

export interface Reference {
  readonly $ref: string
  /** Replaces the description of what it refers to. */
  readonly description?: string
}

export interface ApiOperation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: readonly string[]
  /** Empty if no token is needed. */
  readonly security?: readonly object[]
  readonly parameters?: readonly (ApiParameter | Reference)[]
  readonly requestBody?: { readonly content: Readonly<Record<string, ApiContent>> }
  readonly responses: Readonly<Record<string, ApiResponse | Reference>>
}

export interface ApiParameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly description: string
  readonly schema: ApiSchema
  readonly example?: unknown
}

export interface ApiContent {
  readonly schema: ApiSchema | Reference
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, unknown>>
}

export interface ApiResponse {
  readonly description: string
  readonly headers?: Readonly<Record<string, ApiHeader | Reference>>
  readonly content?: Readonly<Record<string, ApiContent>>
}

export interface ApiHeader {
  readonly description: string
  readonly required?: boolean
  readonly schema: ApiSchema
  readonly example?: unknown
}

export interface ApiSchema {
  readonly type?: string
  readonly format?: string
  readonly title?: string
  readonly description?: string
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, ApiSchema | Reference>>
  readonly items?: ApiSchema | Reference
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly default?: unknown
  readonly minimum?: number | string
  readonly maximum?: number | string
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxItems?: number
  readonly examples?: readonly unknown[]
}

/** An operation with where it is, and with its parameters instead of references to them. */
export interface ListedOperation extends ApiOperation {
  readonly method: string
  readonly path: string
  readonly parameters: readonly ApiParameter[]
}

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown

/** Parses the document. A number that JavaScript would round is kept as its digits. */
export function parseDocument(text: string): ApiDocument {
  const keepDigits: Reviver = (_, value, context) =>
    typeof value === 'number' && !Number.isSafeInteger(value) ? (context?.source ?? value) : value
  return (JSON.parse as (text: string, reviver: Reviver) => ApiDocument)(text, keepDigits)
}

/** The operations of a document, in its order: by path, then by method. */
export function listOperations(paths: ApiDocument['paths'], resolve: Resolve): ListedOperation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      parameters: (operation.parameters ?? []).map((one) => resolve<ApiParameter>(one).value),
      path,
      method: method.toUpperCase(),
    })),
  )
}

/** The example of a body as text. JSON has spaces, at which a line can break. */
export function toExampleText({ example }: ApiContent): string {
  if (typeof example !== 'object') return String(example ?? '')
  return JSON.stringify(example, null, 1).replaceAll(/\n\s*/g, ' ')
}

/** Finds what a reference refers to, and its name. */
export function buildResolve({ components }: ApiDocument) {
  return <Value extends object>(value: Value | Reference): { value: Value; name?: string } => {
    if (!('$ref' in value)) return { value }
    const [, , kind = '', name = ''] = value.$ref.split('/')
    const found = (components as unknown as Record<string, Record<string, Value>>)[kind]?.[name]
    return { value: found as Value, name }
  }
}

export type Resolve = ReturnType<typeof buildResolve>
