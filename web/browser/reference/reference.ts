import { buildField, element, fill, icon } from '../dom.ts'
import { keepToken, recallToken, takeTokenFromAddress } from '../page/token.ts'
import {
  type ApiDocument,
  buildResolve,
  type ListedOperation,
  listExamples,
  listOperations,
  parseDocument,
  type Resolve,
} from './document.ts'
import {
  buildErrors,
  buildHeaders,
  buildOperation,
  buildShapes,
  toBlocks,
  toCode,
} from './sections.ts'
import { buildSample, buildTryIt } from './try-it.ts'

const given = takeTokenFromAddress()
if (given !== undefined) keepToken(given)
void load()

async function load(): Promise<void> {
  const { href } = document.getElementById('document') as HTMLLinkElement
  const response = await fetch(href)
  show(parseDocument(await response.text()))
}

function show(api: ApiDocument): void {
  const { title, version, description } = api.info
  const input = element('input', {
    type: 'password',
    autocomplete: 'off',
    spellcheck: 'false',
    value: recallToken() ?? '',
    input: () => keepToken(input.value),
  })
  const token = buildField('Token', input, 'It stays in this tab.')
  const resolve = buildResolve(api)
  const groups = listGroups(api, resolve, () => input.value)
  const header = element(
    'header',
    { class: 'wide' },
    element('div', { class: 'brand' }, icon('leaf'), element('h1', `${title} reference`)),
    element('span', { class: 'note' }, version),
    element('a', { href: 'openapi.json' }, 'openapi.json'),
    element('a', { href: '.' }, 'Plants'),
  )
  const contents = element(
    'nav',
    { 'aria-label': 'Contents' },
    element('ul', toLink('guide', 'Guide')),
    ...groups.flatMap(({ name, listed }) => [
      element('p', { class: 'note' }, name),
      element('ul', ...listed.map(({ operation }) => toOperationLink(operation))),
    ]),
    element(
      'ul',
      toLink('errors', 'Errors'),
      toLink('shapes', 'Shapes'),
      toLink('headers', 'Headers'),
      toLink('rules', 'Rules'),
    ),
  )
  const main = element(
    'main',
    buildChapter('guide', 'Guide', buildGuide(token.element), 'introduction'),
    ...groups.map(({ name, description, listed }) => {
      const sections = listed.map(({ section }) => section)
      return buildChapter(`tag-${name}`, name, [...toBlocks(description), ...sections], 'group')
    }),
    buildChapter('errors', 'Errors', [buildErrors(api, resolve)]),
    buildChapter('shapes', 'Shapes', buildShapes(api)),
    buildChapter('headers', 'Headers', [buildHeaders(api)]),
    buildChapter('rules', 'Rules', toBlocks(description), 'introduction'),
  )
  fill(document.body, header, element('div', { class: 'reference' }, contents, main))
  goToHash()
  const showToken = () => {
    input.value = recallToken() ?? ''
  }
  addEventListener('hashchange', () => {
    goToHash()
    showToken()
  })
  // "Back" can bring this page back as it was, from before somebody signed out.
  addEventListener('pageshow', showToken)
}

/** The operations by tag, each with its section. Those of webhooks cannot be tried. */
function listGroups(api: ApiDocument, resolve: Resolve, token: () => string) {
  const calls = listOperations(api.paths, resolve).map((operation) => ({
    operation,
    section: buildOperation(operation, resolve, buildTryIt(operation, resolve, token)),
  }))
  const deliveries = listOperations(api.webhooks ?? {}, resolve).map((operation) => ({
    operation,
    section: buildOperation(operation, resolve, buildDelivery(operation)),
  }))
  return api.tags.map(({ name, description }) => ({
    name,
    description,
    listed: [...calls, ...deliveries].filter(({ operation }) => operation.tags.includes(name)),
  }))
}

function buildChapter(id: string, title: string, content: readonly Node[], kind?: string) {
  return element('section', { class: kind }, element('h2', { id }, title), ...content)
}

/** Follows a deep link, once what it leads to is there. */
function goToHash(): void {
  const next = takeTokenFromAddress()
  if (next !== undefined) keepToken(next)
  const target = document.getElementById(location.hash.slice(1))
  if (target === null) return
  target.scrollIntoView()
  target.tabIndex = -1
  target.focus({ preventScroll: true })
}

/** What the service sends to a receiver. */
function buildDelivery({ requestBody }: ListedOperation): HTMLElement {
  const [body = ''] = listExamples(requestBody?.content).values()
  return element('div', { class: 'try' }, ...buildSample('Sample body', body))
}

function toLink(id: string, ...content: readonly (Node | string)[]): HTMLElement {
  return element('li', element('a', { href: `#${id}` }, ...content))
}

function toOperationLink({ operationId, method, summary }: ListedOperation): HTMLElement {
  const shown = element('span', { class: 'method' }, method)
  return toLink(operationId, element('span', summary), ' ', shown)
}

/** The first steps, as the file of this page has them, with the field for the token. */
function buildGuide(token: HTMLElement): Node[] {
  const { content } = document.querySelector('template') as HTMLTemplateElement
  const url = new URL('.', location.href).href.replace(/\/$/, '')
  for (const code of content.querySelectorAll('pre')) {
    const title = code.previousElementSibling?.textContent ?? ''
    code.replaceWith(toCode(title, code.textContent.replace('https://plants.example', url)))
  }
  content.getElementById('token')?.replaceWith(token)
  return [...content.children]
}
