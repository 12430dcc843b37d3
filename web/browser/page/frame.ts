import { toPathId } from '../../../src/contract/int64.ts'
import { expectedSearch, isSearchable } from '../../../src/contract/text.ts'
import { element, fill, icon } from '../dom/element.ts'
import { buildField } from '../dom/field.ts'
import { findIdFault, findTextFault } from './fields.ts'
import type { FileFormat } from './files.ts'
import type { ListMessage } from './messages.ts'
import type { PlantList, Query } from './plant-list.ts'

/** Everything around the list: what can be done, and what is going on. */
export interface Frame {
  readonly elements: readonly HTMLElement[]
  allowWriting(mayWrite: boolean): void
  showList(message: ListMessage): void
  /** Shows what went wrong, with a button that tries again; or nothing more. */
  showProblem(sentence: string | undefined, again?: () => void): void
  /** Shows whether the service answers. */
  showReach(isReached: boolean): void
  /** Shows that changes of others do not appear by themselves. */
  showOff(): void
  /** Says what happened, also to screen readers. */
  announce(sentence: string): void
}

export interface FrameParts {
  readonly list: PlantList
  onSignOut(): void
  onQuery(change: Partial<Query>): void
  onGoTo(id: bigint): void
  onEarlier(): void
  onFirst(): void
  onAdd(): void
  onImport(): void
  onExport(format: FileFormat): void
}

/** The most tags that are suggested, and how long they may be. */
const maxTags = 200
const maxTagLength = 100

/** How long a field waits for the next letter. */
const typingMs = 250

export function buildFrame(parts: FrameParts): Frame {
  const reach = element('p', { class: 'reach', role: 'status', 'data-reach': 'yes' }, 'Live')
  const news = element('p', { class: 'news', role: 'status' })
  const problem = element('div', { class: 'problem', role: 'alert' })
  const empty = element('div', { class: 'empty' })
  const earlier = element(
    'div',
    { class: 'earlier' },
    element('button', { type: 'button', click: parts.onEarlier }, 'Show earlier'),
    element('button', { type: 'button', click: parts.onFirst }, 'Show first'),
  )
  const footer = element('p', { class: 'footer' })
  const add = element(
    'button',
    { type: 'button', class: 'primary', click: parts.onAdd },
    'Add plant',
  )
  const importing = element('button', { type: 'button', click: parts.onImport }, 'Import')
  const format = element(
    'select',
    { 'aria-label': 'Format' },
    element('option', { value: 'csv' }, 'CSV'),
    element('option', { value: 'ndjson' }, 'NDJSON'),
  )
  const exporting = element(
    'button',
    { type: 'button', click: () => parts.onExport(format.value as FileFormat) },
    'Export',
  )
  const tags = new Set<string>()
  const suggestions = element('datalist', { id: 'tags' })
  const name = buildFilter('Search by name', findNameFault, (name) => parts.onQuery({ name }))
  const tag = buildFilter('Filter by tag', findTagFault, (tag) => parts.onQuery({ tag }))
  tag.input.setAttribute('list', 'tags')
  tag.input.addEventListener('focus', () => {
    for (const { tag = '' } of parts.list.describe().rows) {
      if (tags.size < maxTags && tag !== '' && tag.length <= maxTagLength) tags.add(tag)
    }
    fill(suggestions, ...[...tags].sort().map((value) => element('option', { value })))
  })
  const order = buildField(
    'Sort by id',
    element(
      'select',
      { change: () => parts.onQuery({ order: order.control.value as Query['order'] }) },
      element('option', { value: 'asc' }, 'Smallest first'),
      element('option', { value: 'desc' }, 'Largest first'),
    ),
  )
  let isOff = false

  return {
    elements: [
      element(
        'header',
        {},
        element('div', { class: 'brand' }, icon('leaf'), element('h1', {}, 'Plant Store')),
        reach,
        element('a', { href: 'docs' }, 'Reference'),
        element('button', { type: 'button', click: parts.onSignOut }, 'Sign out'),
      ),
      element(
        'main',
        {},
        element(
          'div',
          { class: 'toolbar' },
          name.element,
          tag.element,
          suggestions,
          buildGoTo(parts.onGoTo),
          order.element,
          element('div', { class: 'buttons' }, add, importing, exporting, format),
        ),
        problem,
        news,
        earlier,
        parts.list.table.element,
        empty,
        footer,
      ),
    ],
    allowWriting(mayWrite) {
      add.hidden = !mayWrite
      importing.hidden = !mayWrite
      parts.list.table.refill()
    },
    showList(message) {
      earlier.hidden = parts.list.describe().hasTop
      fill(footer, message.footer)
      empty.hidden = message.empty === undefined
      if (message.empty === undefined) return fill(empty)
      const { title, text } = message.empty
      fill(empty, icon('leaf'), element('h2', {}, title), element('p', {}, text))
    },
    showProblem(sentence, again) {
      if (sentence === undefined) return fill(problem)
      const retry = again && element('button', { type: 'button', click: again }, 'Try again')
      fill(problem, element('p', {}, sentence), retry)
    },
    showReach(isReached) {
      reach.dataset.reach = isReached ? 'yes' : 'no'
      const whenReached = isOff ? 'Live updates are off' : 'Live'
      fill(reach, isReached ? whenReached : 'No answer: trying again')
    },
    showOff() {
      isOff = true
      fill(reach, 'Live updates are off')
    },
    announce(sentence) {
      fill(news, sentence)
    },
  }
}

const findTagFault = (text: string) => findTextFault('tag', text)

function findNameFault(text: string): string | undefined {
  return isSearchable(text) ? undefined : `The text to search for must be ${expectedSearch}.`
}

/** A field that acts as one types. An empty text is none. */
function buildFilter(
  label: string,
  findFault: (text: string) => string | undefined,
  onValue: (text: string | undefined) => void,
) {
  const input = element('input', { type: 'text', autocomplete: 'off', spellcheck: 'false' })
  const field = buildField(label, input)
  let timer: ReturnType<typeof setTimeout> | undefined
  let applied = ''
  const apply = () => {
    clearTimeout(timer)
    const fault = findFault(input.value)
    field.refuse(fault)
    if (fault !== undefined || input.value === applied) return
    applied = input.value
    onValue(applied === '' ? undefined : applied)
  }
  input.addEventListener('input', () => {
    clearTimeout(timer)
    timer = setTimeout(apply, typingMs)
  })
  return { element: toForm(field.element, apply), input }
}

function buildGoTo(onGoTo: (id: bigint) => void): HTMLElement {
  const input = element('input', { autocomplete: 'off', spellcheck: 'false', enterkeyhint: 'go' })
  const field = buildField('Go to id', input)
  input.addEventListener('input', () => field.refuse(undefined))
  return toForm(field.element, () => {
    const id = toPathId(input.value)
    field.refuse(findIdFault(input.value))
    if (id !== undefined) onGoTo(id)
  })
}

function toForm(field: HTMLElement, onSubmit: () => void): HTMLElement {
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    onSubmit()
  }
  return element('form', { novalidate: true, submit }, field)
}
