import { element, fill, icon } from '../dom/element.ts'
import { buildField } from '../dom/field.ts'
import { keepToken, recallToken, takeTokenFromAddress } from '../page/token.ts'
import {
  type ApiDocument,
  type ApiResponse,
  buildResolve,
  type ListedOperation,
  listOperations,
  parseDocument,
  type Resolve,
  toExampleText,
} from './document.ts'
import { buildErrors, buildOperation } from './operation.ts'
import { toBlocks, toInline } from './rich-text.ts'
import { buildHeaders, buildShapes } from './schemas.ts'
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
  const input = element('input', {
    type: 'password',
    autocomplete: 'off',
    spellcheck: 'false',
    value: recallToken() ?? '',
    input: () => keepToken(input.value),
  })
  const token = buildField('Token', input, 'It stays in this tab.')
  const resolve = buildResolve(api)
  const operations = listOperations(api.paths, resolve)
  const webhooks = listOperations(api.webhooks ?? {}, resolve)
  const sections = new Map(
    [...operations, ...webhooks].map((operation) => {
      const call = webhooks.includes(operation)
        ? buildDelivery(operation)
        : buildForm(operation, resolve, () => input.value)
      return [operation, buildOperation(operation, resolve, call)]
    }),
  )
  const groups = api.tags.map(({ name, description }) => ({
    name,
    description,
    listed: [...sections].filter(([{ tags }]) => tags.includes(name)),
  }))
  const { title, version, description } = api.info
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
      element(
        'nav',
        { 'aria-label': 'Contents' },
        buildLinks([['guide', 'Guide']]),
        ...groups.flatMap(({ name, listed }) => [
          element('p', { class: 'note' }, name),
          element('ul', {}, ...listed.map(([operation]) => toItem(operation))),
        ]),
        buildLinks([
          ['errors', 'Errors'],
          ['shapes', 'Shapes'],
          ['headers', 'Headers'],
          ['rules', 'Rules'],
        ]),
      ),
      element(
        'main',
        {},
        element(
          'section',
          { class: 'introduction' },
          element('h2', { id: 'guide' }, 'Guide'),
          ...buildGuide(token.element),
        ),
        ...groups.map(({ name, description, listed }) =>
          element(
            'section',
            { class: 'group' },
            element('h2', { id: `tag-${name}` }, name),
            ...toBlocks(description),
            ...listed.map(([, section]) => section),
          ),
        ),
        element(
          'section',
          {},
          element('h2', { id: 'errors' }, 'Errors'),
          buildErrors(api, resolve),
        ),
        element('section', {}, element('h2', { id: 'shapes' }, 'Shapes'), ...buildShapes(api)),
        element('section', {}, element('h2', { id: 'headers' }, 'Headers'), buildHeaders(api)),
        element(
          'section',
          { class: 'introduction' },
          element('h2', { id: 'rules' }, 'Rules'),
          ...toBlocks(description),
        ),
      ),
    ),
  )
  goToHash()
  addEventListener('hashchange', goToHash)
}

/** Follows a deep link, once what it leads to is there. */
function goToHash(): void {
  const next = takeTokenFromAddress()
  if (next !== undefined) keepToken(next)
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  if (target === null) return
  target.scrollIntoView()
  target.tabIndex = -1
  target.focus({ preventScroll: true })
}

function buildForm(operation: ListedOperation, resolve: Resolve, token: () => string): HTMLElement {
  const [success] = Object.values(operation.responses).map((one) => resolve<ApiResponse>(one).value)
  const [bodies, answers] = [operation.requestBody, success].map((one) => {
    const content = Object.entries(one?.content ?? {})
    return new Map(content.map(([type, body]) => [type, toExampleText(body)]))
  }) as [Map<string, string>, Map<string, string>]
  return buildTryIt({ operation, bodies, answers, token })
}

/** What the service sends to a receiver. */
function buildDelivery({ requestBody }: ListedOperation): HTMLElement {
  const [body] = Object.values(requestBody?.content ?? {}).map(toExampleText)
  return element('div', { class: 'try' }, ...buildSample('Sample body', body ?? ''))
}

function buildLinks(links: readonly (readonly [id: string, title: string])[]): HTMLElement {
  const items = links.map(([id, title]) => element('a', { href: `#${id}` }, title))
  return element('ul', {}, ...items.map((item) => element('li', {}, item)))
}

function toItem({ operationId, method, summary }: ListedOperation): HTMLElement {
  return element(
    'li',
    {},
    element(
      'a',
      { href: `#${operationId}` },
      element('span', {}, summary),
      ' ',
      element('span', { class: 'method' }, method),
    ),
  )
}

/** The first steps: what a program needs before it looks up single operations. */
function buildGuide(token: HTMLElement): HTMLElement[] {
  const url = new URL('.', location.href).href.replace(/\/$/, '')
  const plant = '{"id":1,"name":"Monstera deliciosa","tag":"indoor"}'
  return [
    element('h3', {}, 'Get a token'),
    ...toBlocks(
      'Every request for plants carries a token. The service prints one at its first start. For ' +
        'another one, run `npx plant-store token create --name me` on the machine that runs the ' +
        'service. Enter it here to try the operations of this page:',
    ),
    token,
    element('h3', {}, 'Store a plant'),
    toCode(
      'Store a plant',
      `curl '${url}/plants' \\
  -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' \\
  --data '${plant}'`,
    ),
    element('p', {}, 'A 200 means that the plant is on disk.'),
    element('h3', {}, 'Handle errors'),
    element(
      'p',
      {},
      ...toInline(
        'Every other answer than 2xx and 3xx has a body such as ' +
          '`{"error":40401,"message":"No plant has the id 7."}`. Programs switch on `error`, people ' +
          'read `message`. ',
      ),
      element('a', { href: '#errors' }, 'All errors'),
    ),
    element('h3', {}, 'List all plants'),
    ...toBlocks(
      '`GET /plants` returns 100 plants, or up to 1,000 with `limit`. While more follow, the header ' +
        '`Link` has the URL of the next page: `</plants?limit=100&after=100>; rel="next"`.',
    ),
    element('h3', {}, 'Follow changes'),
    toCode(
      'Follow changes',
      `curl --no-buffer '${url}/events?after=latest' \\
  -H "Authorization: Bearer $TOKEN" \\
  -H 'Accept: text/event-stream'`,
    ),
    ...toBlocks('This prints every change from now on. Without `Accept` it returns pages in JSON.'),
  ]
}

function toCode(label: string, text: string): HTMLElement {
  return element('pre', { tabindex: 0, 'aria-label': label }, element('code', {}, text))
}
