import { element } from '../dom/element.ts'
import type {
  ApiContent,
  ApiDocument,
  ApiHeader,
  ApiParameter,
  ApiResponse,
  ListedOperation,
  Reference,
  Resolve,
} from './document.ts'
import { toBlocks, toInline } from './rich-text.ts'
import { describeSchema, linkToSchema } from './schemas.ts'

/** The section of an operation: what it takes and everything that it can answer, with its call. */
export function buildOperation(
  { operationId, method, path, summary, description, parameters, ...rest }: ListedOperation,
  resolve: Resolve,
  call: HTMLElement,
): HTMLElement {
  const body = Object.entries(rest.requestBody?.content ?? {})
  const responses = Object.entries(rest.responses)
  const [successes, failures] = [false, true].map((isFailure) =>
    responses.filter(([, response]) => '$ref' in response === isFailure),
  ) as [typeof responses, typeof responses]
  return element(
    'section',
    { class: 'operation', id: operationId },
    element(
      'div',
      { class: 'title' },
      element('h3', {}, element('a', { href: `#${operationId}`, class: 'anchor' }, summary)),
      element(
        'p',
        {},
        element('span', { class: 'method' }, method),
        ' ',
        element('code', {}, path),
        method === 'GET' ? element('span', { class: 'note' }, ' also HEAD, OPTIONS') : undefined,
      ),
    ),
    element(
      'div',
      { class: 'columns' },
      element(
        'div',
        { class: 'facts' },
        ...toBlocks(description),
        element(
          'dl',
          {},
          ...(body.length === 0 ? [] : [element('dt', {}, 'Body'), toBodies('dd', body)]),
          ...parameters.flatMap(toParameter),
        ),
      ),
      element(
        'div',
        { class: 'facts' },
        call,
        element(
          'dl',
          {},
          ...successes.flatMap(([status, response]) =>
            toAnswer(operationId, status, response as ApiResponse, resolve),
          ),
        ),
      ),
    ),
    failures.length === 0
      ? undefined
      : element(
          'div',
          { class: 'errors' },
          element('h4', {}, 'Errors'),
          element(
            'ul',
            {},
            ...failures.map(([status, response]) =>
              toError(operationId, status, response as Reference, resolve),
            ),
          ),
        ),
  )
}

function toParameter({ name, in: place, required, description, schema }: ApiParameter) {
  return [
    element(
      'dt',
      {},
      element('code', {}, name),
      element('span', { class: 'note' }, ` ${place}, ${required ? 'required' : 'optional'}`),
    ),
    element(
      'dd',
      {},
      ...toInline(description),
      ' ',
      element('span', { class: 'note' }, describeSchema(schema)),
    ),
  ]
}

function toBodies(
  tag: 'p' | 'dd',
  content: readonly (readonly [type: string, body: ApiContent])[],
): HTMLElement {
  const bodies = content.flatMap(([type, { schema }], index) => [
    ...(index > 0 ? [' · '] : []),
    element('code', {}, type),
    ' ',
    ...linkToSchema(schema),
  ])
  return element(tag, { class: 'note' }, ...bodies)
}

function toAnswer(
  operationId: string,
  status: string,
  { description, headers = {}, content = {} }: ApiResponse,
  resolve: Resolve,
): HTMLElement[] {
  const id = `${operationId}-${status}`
  const bodies = Object.entries(content)
  return [
    element('dt', { id }, element('a', { href: `#${id}`, class: 'anchor' }, status)),
    element(
      'dd',
      {},
      ...toBlocks(description),
      bodies.length === 0 ? undefined : toBodies('p', bodies),
      toHeaders(headers, resolve),
    ),
  ]
}

function toHeaders(headers: NonNullable<ApiResponse['headers']>, resolve: Resolve) {
  const fields = Object.entries(headers).map(([name, header]) => {
    const { required } = resolve<ApiHeader>(header).value
    return element(
      'li',
      {},
      element('a', { href: `#header-${name}` }, element('code', {}, name)),
      required ? '' : element('span', { class: 'note' }, ' at times'),
    )
  })
  return fields.length === 0
    ? undefined
    : element(
        'details',
        {},
        element('summary', {}, `${fields.length} headers`),
        element('ul', { class: 'fields' }, ...fields),
      )
}

/** A status with those of its error numbers that the operation has. */
function toError(
  operationId: string,
  status: string,
  reference: Reference,
  resolve: Resolve,
): HTMLElement {
  const { description } = resolve<ApiResponse>(reference).value
  const numbers = (reference.description ?? description).match(/\b\d{5}\b/g) ?? []
  return element(
    'li',
    { id: `${operationId}-${status}` },
    element('a', { href: `#error-${status}` }, status),
    ` ${numbers.join(', ')}`,
  )
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
    {},
    ...answers
      .sort((one, other) => Number(one.status) - Number(other.status))
      .flatMap(({ status, title, description, headers = {} }) => [
        element('dt', { id: `error-${status}` }, `${status} ${title}`),
        element('dd', {}, ...toBlocks(description), toHeaders(headers, resolve)),
      ]),
  )
}
