import { element } from '../dom.ts'
import type {
  ApiContents,
  ApiDocument,
  ApiHeader,
  ApiParameter,
  ApiResponse,
  ListedOperation,
  Reference,
  Resolve,
} from './document.ts'
import { linkToSchema, toBlocks, toEntry } from './schemas.ts'

/** The section of an operation: what it takes and everything that it can answer, with its call. */
export function buildOperation(
  operation: ListedOperation,
  resolve: Resolve,
  call: HTMLElement,
): HTMLElement {
  const { operationId, description, parameters, requestBody, responses } = operation
  const body = toBodies(requestBody?.content)
  const answers = Object.entries(responses).map(([status, response]) => ({
    id: `${operationId}-${status}`,
    status,
    response,
  }))
  const successes = answers.flatMap(({ id, status, response }) =>
    '$ref' in response ? [] : toAnswer(id, status, response, resolve),
  )
  const failures = answers.flatMap(({ id, status, response }) =>
    '$ref' in response ? [toError(id, status, response, resolve)] : [],
  )
  const taken = element(
    'dl',
    ...(body.length === 0
      ? []
      : [element('dt', 'Body'), element('dd', { class: 'note' }, ...body)]),
    ...parameters.flatMap(toParameter),
  )
  return element(
    'section',
    { class: 'operation', id: operationId },
    buildTitle(operation),
    element(
      'div',
      { class: 'columns' },
      element('div', { class: 'facts' }, ...toBlocks(description), taken),
      element('div', { class: 'facts' }, call, element('dl', ...successes)),
    ),
    failures.length === 0
      ? undefined
      : element('div', { class: 'errors' }, element('h4', 'Errors'), element('ul', ...failures)),
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

function toParameter({ name, in: place, required, description, schema }: ApiParameter) {
  return toEntry(name, `${place}, ${required ? 'required' : 'optional'}`, description, schema)
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

function toAnswer(
  id: string,
  status: string,
  { description, headers, content }: ApiResponse,
  resolve: Resolve,
): HTMLElement[] {
  const bodies = toBodies(content)
  return [
    element('dt', { id }, element('a', { href: `#${id}`, class: 'anchor' }, status)),
    element(
      'dd',
      ...toBlocks(description),
      bodies.length === 0 ? undefined : element('p', { class: 'note' }, ...bodies),
      toHeaders(headers, resolve),
    ),
  ]
}

function toHeaders(headers: ApiResponse['headers'] = {}, resolve: Resolve) {
  const fields = Object.entries(headers).map(([name, header]) => {
    const { required } = resolve<ApiHeader>(header)
    const link = element('a', { href: `#header-${name}` }, element('code', name))
    return element('li', link, required ? '' : element('span', { class: 'note' }, ' optional'))
  })
  if (fields.length === 0) return undefined
  const summary = element('summary', `${fields.length} headers`)
  return element('details', summary, element('ul', { class: 'fields' }, ...fields))
}

/** A status with those of its error numbers that the operation has. */
function toError(id: string, status: string, reference: Reference, resolve: Resolve): HTMLElement {
  const { description } = resolve<ApiResponse>(reference)
  const numbers = (reference.description ?? description).match(/\b\d{5}\b/g) ?? []
  const link = element('a', { href: `#error-${status}` }, status)
  return element('li', { id }, link, ` ${numbers.join(', ')}`)
}

/** Every error number, by status. Each operation says which of them it has. */
export function buildErrors({ components: { responses } }: ApiDocument, resolve: Resolve) {
  const answers = Object.entries(responses).map(([name, response]) => ({
    ...response,
    status: response.description.slice(0, 3),
    // For example `Conflict`, `Bad Request`.
    title: name.replaceAll(/\B[A-Z]/g, ' $&'),
  }))
  return element(
    'dl',
    ...answers
      .sort((one, other) => Number(one.status) - Number(other.status))
      .flatMap(({ status, title, description, headers }) => [
        element('dt', { id: `error-${status}` }, `${status} ${title}`),
        element('dd', ...toBlocks(description), toHeaders(headers, resolve)),
      ]),
  )
}
