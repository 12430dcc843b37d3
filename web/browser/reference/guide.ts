import { element } from '../dom/element.ts'
import { toBlocks, toInline } from './rich-text.ts'

/** The first steps: what a program needs before it looks up single operations. */
export function buildGuide(token: HTMLElement): HTMLElement[] {
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
