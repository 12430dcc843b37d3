import { element, fill, icon } from '../dom/element.ts'
import { buildField } from '../dom/field.ts'
import { keepToken, recallToken, takeTokenFromAddress } from '../page/token.ts'
import {
  type ApiContent,
  type ApiDocument,
  type ApiSchema,
  buildResolve,
  type ListedOperation,
  listOperations,
  parseDocument,
  type Resolve,
} from './document.ts'
import { buildOperation } from './operation.ts'
import { toBlocks } from './rich-text.ts'
import { buildHeaders, buildShapes } from './schemas.ts'
import { buildTryIt } from './try-it.ts'

const given = takeTokenFromAddress()
if (given !== undefined) keepToken(given)
void load()

async function load(): Promise<void> {
  const { href } = document.getElementById('document') as HTMLLinkElement
  const response = await fetch(href)
  show(parseDocument(await response.text()))
}

function show(api: ApiDocument): void {
  const input = element('input', {
    type: 'password',
    autocomplete: 'off',
    spellcheck: 'false',
    value: recallToken() ?? '',
    input: () => keepToken(input.value),
  })
  const token = buildField('Token', input, 'Kept in this tab only. Needed to try operations.')
  const resolve = buildResolve(api)
  const operations = listOperations(api.paths)
  const webhooks = listOperations(api.webhooks ?? {})
  const sections = buildOperations(operations, resolve, () => input.value)
  for (const webhook of webhooks) {
    sections.set(webhook.operationId, buildOperation(webhook, resolve, undefined))
  }
  const all = [...operations, ...webhooks]
  const search = buildSearch(all, sections)
  const { title, version, description } = api.info
  const buildGroup = (tag: string, about: string) =>
    element(
      'section',
      { class: 'group' },
      element('h2', { id: `tag-${tag}` }, tag),
      ...toBlocks(about),
      ...all
        .filter(({ tags }) => tags.includes(tag))
        .map(({ operationId }) => sections.get(operationId)),
    )
  fill(
    document.body,
    element(
      'header',
      { class: 'wide' },
      element('div', { class: 'brand' }, icon('leaf'), element('h1', {}, `${title} reference`)),
      element('span', { class: 'note' }, version),
      element('a', { href: 'openapi.json' }, 'openapi.json'),
      element('a', { href: '.' }, 'Plants'),
    ),
    element(
      'div',
      { class: 'reference' },
      element('nav', { 'aria-label': 'Operations' }, search.field, search.status, search.links),
      element(
        'main',
        {},
        element('section', { class: 'introduction' }, ...toBlocks(description), token.element),
        ...api.tags.map(({ name, description }) => buildGroup(name, description)),
        element('section', {}, element('h2', { id: 'shapes' }, 'Shapes'), ...buildShapes(api)),
        element('section', {}, element('h2', { id: 'headers' }, 'Headers'), buildHeaders(api)),
      ),
    ),
  )
  goToHash()
  addEventListener('hashchange', goToHash)
}

/** Follows a deep link, also into what is folded away. */
function goToHash(): void {
  const next = takeTokenFromAddress()
  if (next !== undefined) keepToken(next)
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  if (target === null) return
  target.scrollIntoView()
  target.tabIndex = -1
  target.focus({ preventScroll: true })
}

/** The section of each operation, by its id. */
function buildOperations(
  operations: readonly ListedOperation[],
  resolve: Resolve,
  token: () => string,
): Map<string, HTMLElement> {
  return new Map(
    operations.map((operation) => {
      const content = Object.entries(operation.requestBody?.content ?? {})
      const bodies = new Map(content.map(([type, body]) => [type, toExample(body, resolve)]))
      const success = resolve(operation.responses[200] ?? { description: '' }).value
      const answers = Object.keys(success.content ?? {})
      const tryIt = buildTryIt({ operation, bodies, answers, token })
      return [operation.operationId, buildOperation(operation, resolve, tryIt)]
    }),
  )
}

/** A body to start with: the example of its media type, or one made of the examples of a shape. */
function toExample({ example, schema }: ApiContent, resolve: Resolve): string {
  if (example !== undefined) return example
  const { properties = {} } = resolve<ApiSchema>(schema).value
  const members = Object.entries(properties).map(([name, member]) => {
    const [first] = resolve<ApiSchema>(member).value.examples ?? []
    return `${JSON.stringify(name)}: ${JSON.stringify(first)}`
  })
  return `{ ${members.join(', ')} }`
}

/** Builds the list of operations and the field that narrows it down. */
function buildSearch(
  operations: readonly ListedOperation[],
  sections: ReadonlyMap<string, HTMLElement>,
) {
  const input = element('input', { type: 'search', autocomplete: 'off', spellcheck: 'false' })
  const { element: field } = buildField('Search', input)
  const status = element('p', { class: 'note', role: 'status' })
  const items = operations.map((operation) => ({ operation, item: toItem(operation) }))
  const texts = new Map<string, string>()

  function search(): void {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean)
    let found = 0
    for (const { operation, item } of items) {
      const { operationId, method, path } = operation
      const section = sections.get(operationId)
      const text =
        texts.get(operationId) ??
        `${operationId} ${method} ${path} ${section?.textContent}`.toLowerCase()
      texts.set(operationId, text)
      const isFound = words.every((word) => text.includes(word))
      item.hidden = !isFound
      if (section !== undefined) section.hidden = !isFound
      if (isFound) found++
    }
    fill(status, words.length === 0 ? undefined : `${found} of ${items.length} operations`)
  }

  input.addEventListener('input', search)
  return { field, status, links: element('ul', {}, ...items.map(({ item }) => item)) }
}

function toItem({ operationId, method, path, summary }: ListedOperation): HTMLLIElement {
  return element(
    'li',
    {},
    element(
      'a',
      { href: `#${operationId}`, title: summary },
      element('span', { class: 'method', 'data-method': method }, method),
      ' ',
      element('code', {}, path),
    ),
  )
}
