import { buildField, element, fill } from '../dom.ts'
import { keepToken, recallToken, takeTokenFromAddress } from '../page/token.ts'
import {
  type ApiDocument,
  buildErrors,
  buildHeaders,
  buildOperation,
  buildShapes,
  listExamples,
  listOperations,
  parseDocument,
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
  const { version, description } = api.info
  const input = element('input', {
    type: 'password',
    value: recallToken() ?? '',
    input: () => keepToken(input.value),
  })
  const token = buildField('Token', input, 'It stays in this tab.')
  const groups = listGroups(api, () => input.value)
  const { content } = document.querySelector('template') as HTMLTemplateElement
  const put = (name: string, ...nodes: readonly (Node | string)[]) =>
    content.querySelector(`slot[name="${name}"]`)?.replaceWith(...nodes)
  put('version', version)
  put('token', token.element)
  put('contents', ...groups.flatMap(buildContents))
  put('operations', ...groups.map(buildGroup))
  put('errors', buildErrors(api))
  put('shapes', ...buildShapes(api))
  put('headers', buildHeaders(api))
  put('rules', ...toBlocks(description))
  const url = new URL('.', location.href).href.replace(/\/$/, '')
  for (const code of content.querySelectorAll('.introduction > pre')) {
    const name = code.previousElementSibling?.textContent ?? ''
    code.replaceWith(toCode(name, code.textContent.replace('https://plants.example', url)))
  }
  fill(document.body, content)
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
function listGroups(api: ApiDocument, token: () => string) {
  const calls = listOperations(api.paths).map((operation) => ({
    operation,
    section: buildOperation(operation, buildTryIt(operation, token)),
  }))
  const deliveries = listOperations(api.webhooks).map((operation) => {
    const [body = ''] = listExamples(operation.requestBody?.content).values()
    const sample = element('div', { class: 'try' }, ...buildSample('Sample body', body))
    return { operation, section: buildOperation(operation, sample) }
  })
  return api.tags.map(({ name, description }) => ({
    name,
    description,
    listed: [...calls, ...deliveries].filter(({ operation }) => operation.tags.includes(name)),
  }))
}

type Group = ReturnType<typeof listGroups>[number]

function buildContents({ name, listed }: Group): HTMLElement[] {
  const links = listed.map(({ operation: { operationId, method, summary } }) => {
    const shown = element('span', { class: 'method' }, method)
    const link = element('a', { href: `#${operationId}` }, element('span', summary), ' ', shown)
    return element('li', link)
  })
  return [element('p', { class: 'note' }, name), element('ul', ...links)]
}

function buildGroup({ name, description, listed }: Group): HTMLElement {
  const sections = listed.map(({ section }) => section)
  const title = element('h2', { id: `tag-${name}` }, name)
  return element('section', { class: 'group' }, title, ...toBlocks(description), ...sections)
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
