import { element, fill, icon } from '../dom/element.ts'
import { buildField } from '../dom/field.ts'
import { keepToken, recallToken, takeTokenFromAddress } from '../page/token.ts'
import { type ApiDocument, buildResolve, listOperations, parseDocument } from './document.ts'
import { buildOperation } from './operation.ts'
import { buildOperations } from './operations.ts'
import { toBlocks } from './rich-text.ts'
import { buildHeaders, buildShapes } from './schemas.ts'
import { buildSearch } from './search.ts'

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
