import { expectedSearch, isSearchable, toPathId } from '../../../src/contract/values.ts'
import { whileBusy } from '../dom/dialog.ts'
import { element, fill, icon } from '../dom/element.ts'
import { buildField } from '../dom/field.ts'
import { findIdFault, findTextFault } from './fields.ts'
import type { ExportFormat } from './files.ts'
import type { ListMessage } from './messages.ts'
import type { PlantList, Query } from './plant-list.ts'

/** Everything around the list: what can be done, and what is going on. */
export interface Frame {
  readonly elements: readonly HTMLElement[]
  allowWriting(mayWrite: boolean): void
  showList(message: ListMessage): void
  /** Shows a problem with a retry button, or clears it. */
  showProblem(sentence: string | undefined, again?: () => unknown): void
  /** Shows whether the service answers. */
  showReach(isReached: boolean): void
  /** Shows whether changes of others appear by themselves. */
  showStream(state: StreamState): void
  /** Says what happened, also to screen readers. */
  announce(sentence: string, button?: HTMLElement): void
  /** Says what somebody did here, with a button that undoes it. */
  showDone(sentence: string, undo?: () => unknown): void
  focusAdd(): void
}

type StreamState = 'connecting' | 'open' | 'lost' | 'off'

export interface FrameParts {
  readonly list: PlantList
  onSignOut(): void
  onQuery(change: Partial<Query>): void
  onGoTo(id: bigint): void
  onEarlier(): void
  onFirst(): void
  onAdd(): void
  onImport(): void
  onExport(format: ExportFormat): void
}

/** Bounds on the suggested tags: their number and their length. */
const maxTags = 200
const maxTagLength = 100

/** The debounce of a field. */
const typingMs = 250

export function buildFrame(parts: FrameParts): Frame {
  const reach = element(
    'p',
    { class: 'reach', role: 'status', 'data-reach': 'yes' },
    'Connecting …',
  )
  const news = element('p', { class: 'news', role: 'status' })
  const done = element('div', { class: 'done', role: 'status' })
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
    element('option', { value: 'spreadsheet' }, 'CSV for spreadsheets'),
  )
  const exporting = element(
    'button',
    { type: 'button', click: () => parts.onExport(format.value as ExportFormat) },
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
  let isReached = true
  let stream: StreamState = 'connecting'
  const reachTexts: Record<StreamState, string> = {
    connecting: 'Connecting …',
    open: 'Live',
    lost: 'Connection lost. Reconnecting …',
    off: 'Live updates are off',
  }
  const updateReach = () => {
    const state = isReached ? stream : 'lost'
    reach.dataset.reach = state === 'lost' ? 'no' : 'yes'
    if (reach.textContent !== reachTexts[state]) fill(reach, reachTexts[state])
  }

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
        done,
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
      fill(problem, element('p', {}, sentence), again && buildButton('Try again', again))
    },
    showReach(next) {
      isReached = next
      updateReach()
    },
    showStream(next) {
      stream = next
      updateReach()
    },
    announce(sentence, button) {
      fill(news, sentence, ' ', button)
    },
    showDone(sentence, undo) {
      fill(done, element('span', {}, sentence), undo && buildButton('Undo', undo))
    },
    focusAdd: () => add.focus(),
  }
}

/** A button whose second press does nothing until the first has had its effect. */
function buildButton(label: string, act: () => unknown): HTMLButtonElement {
  const click = () => void whileBusy(button, async () => act())
  const button = element('button', { type: 'button', click }, label)
  return button
}

const findTagFault = (text: string) => findTextFault('tag', text)

function findNameFault(text: string): string | undefined {
  return isSearchable(text) ? undefined : `The text to search for must be ${expectedSearch}.`
}

/** A field that applies its text while it is typed. An empty text removes the filter. */
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
