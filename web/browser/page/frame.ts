import type { StoredPlant } from '../../../client/index.ts'
import { expectedSearch, isSearchable, isStorable, toPathId } from '../../../src/contract/values.ts'
import {
  buildButton,
  buildButtons,
  buildChoice,
  buildField,
  buildForm,
  element,
  fill,
  icon,
} from '../dom.ts'
import { findIdFault, tagsId } from './fields.ts'
import type { PlantList, Query } from './list.ts'
import type { ExportFormat } from './plant-files.ts'
import type { ListMessage } from './wording.ts'

type StreamState = keyof typeof reachTexts

const reachTexts = {
  connecting: 'Connecting …',
  open: 'Live',
  lost: 'Connection lost. Reconnecting …',
  expired: 'The token has expired',
  refused: 'The token was refused',
  off: 'Live updates are off',
}

export interface FrameParts {
  readonly list: PlantList
  onSignOut(): void
  onQuery(change: Partial<Query>): void
  onGoTo(id: bigint): void
  onMore(): Promise<void>
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
  const which = element('p', { class: 'which', role: 'status' })
  const news = element('p', { class: 'news', role: 'status' })
  const done = element('div', { class: 'done', role: 'status' })
  const problem = element('div', { class: 'problem', role: 'alert' })
  const empty = element('div', { class: 'empty' })
  const earlier = element(
    'div',
    { class: 'around' },
    buildButton('Show earlier', parts.onEarlier),
    buildButton('Show first', parts.onFirst),
  )
  const more = buildButton('Show more', parts.onMore)
  const footer = element('p', { class: 'footer' })
  const add = buildButton('Add plant', parts.onAdd, { class: 'primary' })
  const importing = buildButton('Import', parts.onImport)
  const exported = element('span', { class: 'note' })
  const reach = buildReach()
  const tags = buildTags()
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
    buildFilter('Search by name', findNameFault, (name) => parts.onQuery({ name })),
    buildFilter('Filter by tag', findTagFault, (tag) => parts.onQuery({ tag }), {
      list: tags.element.id,
      note: 'The whole tag, exactly',
    }),
    buildGoTo(parts.onGoTo),
    buildOrder(parts),
    buildButtons(add, importing, ...buildExport(parts), exported),
  )
  const state = element('div', { class: 'state' }, which, news)
  const end = element('div', { class: 'around' }, footer, more)
  const notices = element('div', { class: 'notices' }, problem, done)
  const table = list.table.element

  return {
    elements: [
      header,
      element('main', toolbar, tags.element, state, earlier, table, empty, end, notices),
    ],
    allowWriting(mayWrite: boolean): void {
      add.hidden = !mayWrite
      importing.hidden = !mayWrite
    },
    showList(message: ListMessage): void {
      tags.note(list.describe().rows)
      earlier.hidden = message.hasTop
      more.hidden = !message.hasMore
      const next = element('p', ...message.which)
      // Screen readers read what is filled in again.
      if (next.textContent !== which.textContent) fill(which, ...next.childNodes)
      fill(footer, message.footer)
      fill(exported, ...message.exported)
      empty.hidden = message.empty === undefined
      if (message.empty === undefined) return
      const { title, text } = message.empty
      fill(empty, icon('leaf'), element('h2', title), element('p', ...text))
    },
    /** Shows a problem with a retry button, or clears it. */
    showProblem(sentence?: string, again?: () => unknown): void {
      const text = sentence === undefined ? undefined : element('p', sentence)
      fill(problem, text, again && buildButton('Try again', again))
    },
    showReach: reach.showReach,
    showStream: reach.showStream,
    /** Says what happened, also to screen readers. */
    announce(sentence: string): void {
      list.table.keepInPlace(() => fill(news, sentence))
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
    text.dataset.reach = state
    if (text.textContent !== reachTexts[state]) fill(text, reachTexts[state])
  }
  update()
  return {
    element: text,
    /** Shows whether the service answers. Returns whether it does so again. */
    showReach(next: boolean): boolean {
      const isBack = next && !isReached
      isReached = next
      update()
      return isBack
    },
    /** Shows whether changes of others appear by themselves. */
    showStream(next: StreamState): void {
      stream = next
      update()
    },
  }
}

/** The tags that the page has shown, which fields for tags offer. */
function buildTags() {
  const tags = new Set<string>()
  const suggestions = element('datalist', { id: tagsId })
  return {
    element: suggestions,
    note(plants: readonly StoredPlant[]): void {
      const { size } = tags
      for (const { tag = '' } of plants) {
        if (tags.size < maxTags && tag !== '' && tag.length <= maxTagLength) tags.add(tag)
      }
      if (tags.size === size) return
      fill(suggestions, ...[...tags].sort().map((value) => element('option', { value })))
    },
  }
}

function findTagFault(text: string): string | undefined {
  return isStorable(text) ? undefined : 'No tag contains NUL characters or halves of characters.'
}

function buildOrder({ onQuery }: FrameParts): HTMLElement {
  const choice = buildChoice(['asc', 'Smallest first'], ['desc', 'Largest first'])
  choice.addEventListener('change', () => onQuery({ order: choice.value as Query['order'] }))
  return buildField('Sort by id', choice).element
}

function buildExport({ onExport }: FrameParts): HTMLElement[] {
  const format = buildChoice(
    ['spreadsheet', 'For spreadsheets'],
    ['csv', 'CSV, exact'],
    ['ndjson', 'NDJSON, exact'],
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
  { list, note }: { list?: string; note?: string } = {},
): HTMLElement {
  const input = element('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', list })
  const field = buildField(label, input, note)
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
  return buildForm(apply, field.element)
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
