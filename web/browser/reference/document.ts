/** What the reference shows of an OpenAPI document. */
export interface ApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: ApiPaths
  readonly webhooks?: ApiPaths
  readonly components: {
    readonly schemas: Readonly<Record<string, ApiSchema>>
    readonly headers: Readonly<Record<string, ApiHeader>>
    readonly responses: Readonly<Record<string, ApiResponse>>
  }
}

type ApiPaths = Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>

/** A part of the document, or a reference to one, with a description of its own. */
interface ApiPart {
  readonly $ref?: string
  readonly description?: string
}

interface ApiOperation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: readonly string[]
  /** Empty if no token is needed. */
  readonly security?: readonly object[]
  readonly parameters?: readonly ApiParameter[]
  readonly requestBody?: { readonly content: ApiContents }
  readonly responses: Readonly<Record<string, ApiResponse>>
}

export interface ApiHeader extends ApiPart {
  readonly required?: boolean
  readonly schema: ApiSchema
  readonly example?: unknown
}

export interface ApiParameter extends ApiHeader {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
}

export interface ApiResponse extends ApiPart {
  readonly headers?: Readonly<Record<string, ApiHeader>>
  readonly content?: ApiContents
}

/** Bodies, by media type. */
export type ApiContents = Readonly<
  Record<string, { readonly schema: ApiSchema; readonly example?: unknown }>
>

export interface ApiSchema extends ApiPart {
  readonly type?: string
  readonly format?: string
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, ApiSchema>>
  readonly items?: ApiSchema
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly default?: unknown
  readonly minimum?: number | string
  readonly maximum?: number | string
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxItems?: number
}

/** An operation with where it is, and with its parameters instead of references to them. */
export interface ListedOperation extends ApiOperation {
  readonly method: string
  readonly path: string
  readonly parameters: readonly ApiParameter[]
}

/** Parses the document. A number that JavaScript would round is kept as its digits. */
export function parseDocument(text: string): ApiDocument {
  const keepDigits = (_: string, value: unknown, context?: { readonly source?: string }) =>
    typeof value === 'number' && !Number.isSafeInteger(value) ? (context?.source ?? value) : value
  return JSON.parse(text, keepDigits) as ApiDocument
}

/** The operations of a document, in its order: by path, then by method. */
export function listOperations(paths: ApiPaths, resolve: Resolve): ListedOperation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      parameters: (operation.parameters ?? []).map(resolve),
      path,
      method: method.toUpperCase(),
    })),
  )
}

/** Example bodies as text, by media type. JSON has spaces, at which a line can break. */
export function listExamples(contents: ApiContents = {}): ReadonlyMap<string, string> {
  const entries = Object.entries(contents)
  return new Map(entries.map(([type, { example }]) => [type, toText(example)]))
}

function toText(example: unknown): string {
  if (typeof example !== 'object') return String(example ?? '')
  return JSON.stringify(example, null, 1).replaceAll(/\n\s*/g, ' ')
}

/** Finds what a reference refers to. */
export function buildResolve({ components }: ApiDocument) {
  return <Part extends ApiPart>(part: Part): Part => {
    const [, , kind = '', name = ''] = part.$ref?.split('/') ?? []
    const parts = components as unknown as Record<string, Record<string, Part>>
    return parts[kind]?.[name] ?? part
  }
}

export type Resolve = ReturnType<typeof buildResolve>
