import { expectedSearch, isSearchable, toPathId } from '../../../src/contract/values.ts'
import { element, fill, icon } from '../dom/element.ts'
import { buildChoice, buildField } from '../dom/field.ts'
import { buildButton, buildButtons, buildForm } from '../dom/form.ts'
import { findIdFault, findTextFault } from './fields.ts'
import type { ExportFormat } from './files.ts'
import type { ListMessage } from './messages.ts'
import type { PlantList, Query } from './plant-list.ts'

type StreamState = keyof typeof reachTexts

const reachTexts = {
  connecting: 'Connecting …',
  open: 'Live',
  lost: 'Connection lost. Reconnecting …',
  off: 'Live updates are off',
}

export interface FrameParts {
  readonly list: PlantList
  onSignOut(): void
  onQuery(change: Partial<Query>): void
  onGoTo(id: bigint): void
  onEarlier(): Promise<void>
  onFirst(): Promise<void>
  onAdd(): void
  onImport(): void
  onExport(format: ExportFormat): Promise<void>
}

/** Bounds on the suggested tags: their number and their length. */
const maxTags = 200
const maxTagLength = 100

/** The debounce of a field. */
const typingMs = 250

/** Builds everything around the list: what can be done, and what is going on. */
export function buildFrame(parts: FrameParts) {
  const { list } = parts
  const news = element('p', { class: 'news', role: 'status' })
  const done = element('div', { class: 'done', role: 'status' })
  const problem = element('div', { class: 'problem', role: 'alert' })
  const empty = element('div', { class: 'empty' })
  const earlier = element(
    'div',
    { class: 'earlier' },
    buildButton('Show earlier', parts.onEarlier),
    buildButton('Show first', parts.onFirst),
  )
  const footer = element('p', { class: 'footer' })
  const add = buildButton('Add plant', parts.onAdd, { class: 'primary' })
  const importing = buildButton('Import', parts.onImport)
  const reach = buildReach()
  const header = element(
    'header',
    element('div', { class: 'brand' }, icon('leaf'), element('h1', 'Plant Store')),
    reach.element,
    element('a', { href: 'docs' }, 'Reference'),
    buildButton('Sign out', parts.onSignOut),
  )
  const toolbar = element(
    'div',
    { class: 'toolbar' },
    buildFilter('Search by name', findNameFault, (name) => parts.onQuery({ name })).element,
    ...buildTagFilter(parts),
    buildGoTo(parts.onGoTo),
    buildOrder(parts),
    buildButtons(add, importing, ...buildExport(parts)),
  )
  const content = [toolbar, problem, news, earlier, list.table.element, empty, footer, done]

  return {
    elements: [header, element('main', ...content)],
    allowWriting(mayWrite: boolean): void {
      add.hidden = !mayWrite
      importing.hidden = !mayWrite
      list.table.refill()
    },
    showList(message: ListMessage): void {
      earlier.hidden = list.describe().hasTop
      fill(footer, message.footer)
      empty.hidden = message.empty === undefined
      if (message.empty === undefined) return
      const { title, text } = message.empty
      fill(empty, icon('leaf'), element('h2', title), element('p', text))
    },
    /** Shows a problem with a retry button, or clears it. */
    showProblem(sentence: string | undefined, again?: () => unknown) {
      if (sentence === undefined) return fill(problem)
      fill(problem, element('p', sentence), again && buildButton('Try again', again))
    },
    showReach: reach.showReach,
    showStream: reach.showStream,
    /** Says what happened, also to screen readers. */
    announce(sentence: string, button?: HTMLElement): void {
      fill(news, sentence, ' ', button)
    },
    /** Says what somebody did here, with a button that undoes it. */
    showDone(sentence: string, undo?: () => unknown): void {
      fill(done, element('span', sentence), undo && buildButton('Undo', undo))
    },
    focusAdd: (): void => add.focus(),
  }
}

/** Whether the service can be reached, and whether changes of others appear by themselves. */
function buildReach() {
  const text = element('p', { class: 'reach', role: 'status' })
  let isReached = true
  let stream: StreamState = 'connecting'
  function update(): void {
    const state = isReached ? stream : 'lost'
    text.dataset.reach = state === 'lost' ? 'no' : 'yes'
    // Screen readers read what is filled in again.
    if (text.textContent !== reachTexts[state]) fill(text, reachTexts[state])
  }
  update()
  return {
    element: text,
    /** Shows whether the service answers. */
    showReach(next: boolean): void {
      isReached = next
      update()
    },
    /** Shows whether changes of others appear by themselves. */
    showStream(next: StreamState): void {
      stream = next
      update()
    },
  }
}

function buildTagFilter({ list, onQuery }: FrameParts): HTMLElement[] {
  const tags = new Set<string>()
  const suggestions = element('datalist', { id: 'tags' })
  const findFault = (text: string) => findTextFault('tag', text)
  const filter = buildFilter('Filter by tag', findFault, (tag) => onQuery({ tag }))
  filter.input.setAttribute('list', 'tags')
  filter.input.addEventListener('focus', () => {
    for (const { tag = '' } of list.describe().rows) {
      if (tags.size < maxTags && tag !== '' && tag.length <= maxTagLength) tags.add(tag)
    }
    fill(suggestions, ...[...tags].sort().map((value) => element('option', { value })))
  })
  return [filter.element, suggestions]
}

function buildOrder({ onQuery }: FrameParts): HTMLElement {
  const choice = buildChoice(['asc', 'Smallest first'], ['desc', 'Largest first'])
  choice.addEventListener('change', () => onQuery({ order: choice.value as Query['order'] }))
  return buildField('Sort by id', choice).element
}

function buildExport({ onExport }: FrameParts): HTMLElement[] {
  const format = buildChoice(
    ['csv', 'CSV'],
    ['ndjson', 'NDJSON'],
    ['spreadsheet', 'CSV for spreadsheets'],
  )
  format.ariaLabel = 'Format'
  return [buildButton('Export', () => onExport(format.value as ExportFormat)), format]
}

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
  return { element: buildForm(apply, field.element), input }
}

function buildGoTo(onGoTo: (id: bigint) => void): HTMLElement {
  const input = element('input', { autocomplete: 'off', spellcheck: 'false', enterkeyhint: 'go' })
  const field = buildField('Go to id', input)
  input.addEventListener('input', () => field.refuse(undefined))
  const go = () => {
    const id = toPathId(input.value)
    field.refuse(findIdFault(input.value))
    if (id !== undefined) onGoTo(id)
  }
  return buildForm(go, field.element)
}
