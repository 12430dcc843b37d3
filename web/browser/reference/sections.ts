import { element } from '../dom.ts'

/** What the reference shows of an OpenAPI document. */
export interface ApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: ApiPaths
  readonly webhooks: ApiPaths
  readonly components: {
    readonly schemas: Readonly<Record<string, ApiSchema>>
    readonly headers: Readonly<Record<string, ApiHeader>>
    readonly responses: Readonly<Record<string, ApiResponse>>
  }
}

type ApiPaths = Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>

/** A part of the document. One that is described elsewhere says where. */
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
  readonly parameters: readonly ApiParameter[]
  readonly requestBody?: { readonly content: ApiContents }
  readonly responses: Readonly<Record<string, ApiResponse>>
}

interface ApiHeader extends ApiPart {
  readonly required?: boolean
  readonly schema: ApiSchema
  readonly example?: unknown
}

export interface ApiParameter extends ApiHeader {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
}

interface ApiResponse extends ApiPart {
  readonly headers?: Readonly<Record<string, ApiHeader>>
  readonly content?: ApiContents
}

/** Bodies, by media type. */
type ApiContents = Readonly<
  Record<string, { readonly schema: ApiSchema; readonly example?: unknown }>
>

interface ApiSchema extends ApiPart {
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

/** An operation with where it is. */
export interface ListedOperation extends ApiOperation {
  readonly method: string
  readonly path: string
}

/**
 * Parses the document. A number that JavaScript would round is kept as its digits, and what a part
 * refers to is put into it.
 */
export function parseDocument(text: string): ApiDocument {
  const keepDigits = (_: string, value: unknown, context?: { readonly source?: string }) =>
    typeof value === 'number' && !Number.isSafeInteger(value) ? (context?.source ?? value) : value
  const document = JSON.parse(text, keepDigits)

  function resolve(part: unknown): unknown {
    if (typeof part !== 'object' || part === null) return part
    if (Array.isArray(part)) return part.map(resolve)
    const [, , kind = '', name = ''] = '$ref' in part ? String(part.$ref).split('/') : []
    const whole = { ...document.components[kind]?.[name], ...part }
    return Object.fromEntries(Object.entries(whole).map(([key, value]) => [key, resolve(value)]))
  }

  return resolve(document) as ApiDocument
}

/** The operations of a document, in its order: by path, then by method. */
export function listOperations(paths: ApiPaths): ListedOperation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      return { ...operation, path, method: method.toUpperCase() }
    }),
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

/** The section of an operation: what it takes and everything that it can answer, with its call. */
export function buildOperation(operation: ListedOperation, call: HTMLElement): HTMLElement {
  const { operationId, description, parameters, requestBody, responses } = operation
  const body = toBodies(requestBody?.content)
  const answers: readonly Answer[] = Object.entries(responses).map(([status, response]) => {
    return { id: `${operationId}-${status}`, status, response }
  })
  const successes = answers.filter(({ response }) => response.$ref === undefined)
  const failures = answers.filter(({ response }) => response.$ref !== undefined)
  const taken = element(
    'dl',
    ...(body.length === 0
      ? []
      : [element('dt', 'Body'), element('dd', { class: 'note' }, ...body)]),
    ...parameters.flatMap(({ name, in: place, required, description, schema }) =>
      toEntry(name, `${place}, ${required ? 'required' : 'optional'}`, description, schema),
    ),
  )
  return element(
    'section',
    { class: 'operation', id: operationId },
    buildTitle(operation),
    element(
      'div',
      { class: 'columns' },
      element('div', { class: 'facts' }, ...toBlocks(description), taken),
      element('div', { class: 'facts' }, call, element('dl', ...successes.flatMap(toAnswer))),
    ),
    failures.length === 0
      ? undefined
      : element(
          'div',
          { class: 'errors' },
          element('h4', 'Errors'),
          element('ul', ...failures.map(toError)),
        ),
  )
}

function buildTitle({ operationId, method, path, summary }: ListedOperation): HTMLElement {
  const also = method === 'GET' ? ' also HEAD, OPTIONS' : ''
  return element(
    'div',
    { class: 'title' },
    element('h3', element('a', { href: `#${operationId}`, class: 'anchor' }, summary)),
    element(
      'p',
      element('span', { class: 'method' }, method),
      ' ',
      element('code', path),
      element('span', { class: 'note' }, also),
    ),
  )
}

/** The media types of a body, each with its shape. */
function toBodies(contents: ApiContents = {}): (Node | string)[] {
  return Object.entries(contents).flatMap(([type, { schema }], index) => [
    index > 0 ? ' · ' : '',
    element('code', type),
    ' ',
    ...linkToSchema(schema),
  ])
}

interface Answer {
  readonly id: string
  readonly status: string
  readonly response: ApiResponse
}

function toAnswer({ id, status, response }: Answer): HTMLElement[] {
  const { description, headers, content } = response
  const bodies = toBodies(content)
  return [
    element('dt', { id }, element('a', { href: `#${id}`, class: 'anchor' }, status)),
    element(
      'dd',
      ...toBlocks(description),
      bodies.length === 0 ? undefined : element('p', { class: 'note' }, ...bodies),
      toHeaders(headers),
    ),
  ]
}

function toHeaders(headers: ApiResponse['headers'] = {}) {
  const fields = Object.entries(headers).map(([name, { required }]) => {
    const link = element('a', { href: `#header-${name}` }, element('code', name))
    return element('li', link, required ? '' : element('span', { class: 'note' }, ' optional'))
  })
  if (fields.length === 0) return undefined
  const summary = element('summary', `${fields.length} headers`)
  return element('details', summary, element('ul', { class: 'fields' }, ...fields))
}

/** A status with those of its error numbers that the operation has. */
function toError({ id, status, response }: Answer): HTMLElement {
  const numbers = response.description?.match(/\b\d{5}\b/g) ?? []
  const link = element('a', { href: `#error-${status}` }, status)
  return element('li', { id }, link, ` ${numbers.join(', ')}`)
}

/** Every error number, by status. Each operation says which of them it has. */
export function buildErrors({ components: { responses } }: ApiDocument): HTMLElement {
  const answers = Object.entries(responses).map(([name, response]) => ({
    ...response,
    status: response.description?.slice(0, 3) ?? '',
    // For example `Conflict`, `Bad Request`.
    title: name.replaceAll(/\B[A-Z]/g, ' $&'),
  }))
  return element(
    'dl',
    ...answers
      .sort((one, other) => Number(one.status) - Number(other.status))
      .flatMap(({ status, title, description, headers }) => [
        element('dt', { id: `error-${status}` }, `${status} ${title}`),
        element('dd', ...toBlocks(description), toHeaders(headers)),
      ]),
  )
}

/** Text whose only mark is backticks around code. */
export function toInline(text = ''): (Node | string)[] {
  return text
    .split(/`([^`]+)`/)
    .map((part, index) => (index % 2 === 1 ? element('code', part) : part))
}

/** Paragraphs, and lists whose items start with a dash. */
export function toBlocks(text = ''): HTMLElement[] {
  return text.split('\n\n').map((block) => {
    if (!block.startsWith('- ')) return element('p', ...toInline(block))
    const items = block.slice(2).split('\n- ')
    return element('ul', ...items.map((item) => element('li', ...toInline(item))))
  })
}

/** Code in a block of its own, which the keyboard can scroll. */
export function toCode(label: string, code: string | Node): HTMLElement {
  const content = typeof code === 'string' ? element('code', code) : code
  return element('pre', { tabindex: 0, 'aria-label': label }, content)
}

/** The sections of the shapes and of the headers, to which the operations link. */
export function buildShapes({ components: { schemas } }: ApiDocument): HTMLElement[] {
  return Object.entries(schemas).map(([name, schema]) => {
    const { description, items, properties = {}, required = [] } = schema
    const members = Object.entries(properties).flatMap(([member, shape]) => {
      const note = required.includes(member) ? 'required' : 'optional'
      if (shape.$ref === undefined) return toEntry(member, note, shape.description, shape)
      return [toTerm(member, note), element('dd', ...linkToSchema(shape))]
    })
    return element(
      'section',
      { id: `shape-${name}` },
      element('h3', element('a', { href: `#shape-${name}`, class: 'anchor' }, name)),
      element('p', ...toInline(description)),
      element('p', { class: 'note' }, describeSchema(schema)),
      items && element('p', 'Each is ', ...linkToSchema(items)),
      element('dl', ...members),
    )
  })
}

export function buildHeaders({ components: { headers } }: ApiDocument): HTMLElement {
  // One that is required here and optional there is in the document twice.
  const known = Object.entries(headers).filter(([name]) => !/-(optional|required)$/.test(name))
  return element(
    'dl',
    ...known.flatMap(([name, { description, schema, example }]) => [
      element('dt', { id: `header-${name}` }, element('code', name)),
      element(
        'dd',
        ...toInline(description),
        ' ',
        element('span', { class: 'note' }, describeSchema(schema), ' Such as '),
        element('code', String(example)),
      ),
    ]),
  )
}

/** An entry of a list of parameters or members: its name with a note, and what it is. */
function toEntry(name: string, note: string, description = '', schema: ApiSchema = {}) {
  const words = element('span', { class: 'note' }, describeSchema(schema))
  return [toTerm(name, note), element('dd', ...toInline(description), ' ', words)]
}

function toTerm(name: string, note: string): HTMLElement {
  return element('dt', element('code', name), element('span', { class: 'note' }, ` ${note}`))
}

/** The name of a shape as a link, or what a text is. */
function linkToSchema({ $ref, description, type }: ApiSchema): (Node | string)[] {
  if ($ref === undefined) return toInline(description ?? type)
  const name = $ref.replace(/^.*\//, '')
  return [element('a', { href: `#shape-${name}` }, name)]
}

/** A schema in a few words. Its pattern, if any, is in openapi.json. */
function describeSchema(schema: ApiSchema): string {
  const { type = '', format, minimum, maximum, minLength, maxLength, maxItems } = schema
  const { enum: values = schema.const === undefined ? [] : [schema.const] } = schema
  const parts = [
    format === undefined ? type : `${type} (${format})`,
    ...(minimum === undefined ? [] : [`${minimum} to ${maximum}`]),
    ...(maxLength === undefined ? [] : [`${minLength ?? 0} to ${maxLength} characters`]),
    ...(maxItems === undefined ? [] : [`at most ${maxItems}`]),
    ...(values.length === 1 ? [`always ${values}`] : []),
    ...(values.length > 1 ? [`one of ${values.join(', ')}`] : []),
    ...(schema.default === undefined ? [] : [`${schema.default} unless given`]),
  ]
  const words = parts.filter((part) => part !== '').join(', ')
  return words === '' ? '' : `${words}.`
}
