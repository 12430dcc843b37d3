import { element } from '../dom/element.ts'
import type { ApiParameter, ApiResponse, ListedOperation, Reference, Resolve } from './document.ts'
import { toBlocks, toInline } from './rich-text.ts'
import { describeSchema, linkToSchema } from './schemas.ts'

/** The section of an operation: what it takes and everything that it can answer. */
export function buildOperation(
  { operationId, method, path, summary, description, parameters = [], ...rest }: ListedOperation,
  resolve: Resolve,
  tryIt: HTMLElement | undefined,
): HTMLElement {
  const body = Object.entries(rest.requestBody?.content ?? {})
  return element(
    'section',
    { class: 'operation', id: operationId },
    element('h3', {}, element('a', { href: `#${operationId}`, class: 'anchor' }, summary)),
    element(
      'p',
      { class: 'route' },
      element('span', { class: 'method', 'data-method': method }, method),
      ' ',
      element('code', {}, path),
    ),
    element(
      'div',
      { class: tryIt === undefined ? '' : 'columns' },
      element(
        'div',
        { class: 'facts' },
        ...toBlocks(description),
        ...(parameters.length === 0
          ? []
          : [element('h4', {}, 'Parameters'), toParameters(parameters)]),
        ...(body.length === 0
          ? []
          : [
              element('h4', {}, 'Body'),
              ...body.map(([type, { schema }]) =>
                element('p', {}, element('code', {}, type), ' ', ...linkToSchema(schema)),
              ),
            ]),
        element('h4', {}, 'Answers'),
        element(
          'dl',
          { class: 'answers' },
          ...Object.entries(rest.responses).flatMap(([status, response]) =>
            toAnswer(operationId, status, response, resolve),
          ),
        ),
      ),
      tryIt,
    ),
  )
}

function toParameters(parameters: readonly ApiParameter[]): HTMLElement {
  return element(
    'dl',
    {},
    ...parameters.flatMap(({ name, in: place, required, description, schema }) => [
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
        element('span', { class: 'note' }, ...describeSchema(schema)),
      ),
    ]),
  )
}

function toAnswer(
  operationId: string,
  status: string,
  given: ApiResponse | Reference,
  resolve: Resolve,
): HTMLElement[] {
  const { description, headers = {}, content = {} } = resolve<ApiResponse>(given).value
  const id = `${operationId}-${status}`
  const bodies = Object.entries(content).flatMap(([type, { schema }], index) => [
    ...(index > 0 ? [', '] : []),
    element('code', {}, type),
    ' ',
    ...linkToSchema(schema),
  ])
  const fields = Object.entries(headers).map(([name, header]) => {
    const { required } = resolve(header).value
    return element(
      'li',
      {},
      element('a', { href: `#header-${name}` }, element('code', {}, name)),
      required ? '' : element('span', { class: 'note' }, ' at times'),
    )
  })
  return [
    element('dt', { id }, element('a', { href: `#${id}`, class: 'anchor' }, status)),
    element(
      'dd',
      {},
      ...toBlocks(description),
      bodies.length === 0 ? undefined : element('p', { class: 'note' }, ...bodies),
      element(
        'details',
        {},
        element('summary', {}, `${fields.length} headers`),
        element('ul', { class: 'fields' }, ...fields),
      ),
    ),
  ]
}
