import { element, fill } from '../dom/element.ts'
import { buildField } from '../dom/field.ts'
import type { ListedOperation } from './document.ts'

/** Builds the list of operations and the field that narrows it down. */
export function buildSearch(
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
