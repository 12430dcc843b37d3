import type { StoredPlant } from '../../../client/index.ts'
import { toPathId } from '../../../src/contract/values.ts'
import {
  buildButton,
  buildButtons,
  buildChoice,
  buildField,
  buildForm,
  type Child,
  element,
  fill,
  format,
  icon,
  toCount,
} from '../dom.ts'
import { type Change, type ListState, type PlantList, type Query, shorten } from './list.ts'
import { findIdFault, tagsId } from './plant-dialogs.ts'
import type { ExportFormat } from './plant-files.ts'

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

/** The most tags that are suggested. */
const maxTags = 200

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
  const order = buildChoice(['asc', 'Smallest first'], ['desc', 'Largest first'])
  order.onchange = () => parts.onQuery({ order: order.value as Query['order'] })
  const reach = element('p', { class: 'reach', role: 'status' })
  let isReached = true
  let stream: StreamState = 'connecting'
  const tags = buildTags()
  const header = element(
    'header',
    element('div', { class: 'brand' }, icon('leaf'), element('h1', 'Plant Store')),
    reach,
    element('a', { href: 'docs' }, 'Reference'),
    buildButton('Sign out', parts.onSignOut),
  )
  const toolbar = element(
    'div',
    { class: 'toolbar' },
    buildFilter('Search by name', (name) => parts.onQuery({ name })),
    buildFilter('Filter by tag', (tag) => parts.onQuery({ tag }), {
      list: tags.element.id,
      note: 'The whole tag, exactly',
    }),
    buildGoTo(parts.onGoTo),
    buildField('Sort by id', order).element,
    buildButtons(add, importing, ...buildExport(parts), exported),
  )
  const state = element('div', { class: 'state' }, which, news)
  const end = element('div', { class: 'around' }, footer, more)
  const notices = element('div', { class: 'notices' }, problem, done)
  const table = list.table.element

  function showState(): void {
    const state = isReached ? stream : 'lost'
    reach.dataset.reach = state
    if (reach.textContent !== reachTexts[state]) fill(reach, reachTexts[state])
  }

  showState()
  return {
    elements: [
      header,
      element('main', toolbar, tags.element, state, earlier, table, empty, end, notices),
    ],
    /** Shows the list, and what may be done with it. */
    showList(mayWrite: boolean): void {
      table.toggleAttribute('data-read-only', !mayWrite)
      add.hidden = !mayWrite
      importing.hidden = !mayWrite
      const state = list.describe()
      const { query, rows, hasTop, hasEnd, isLoading } = state
      tags.note(rows)
      earlier.hidden = hasTop
      more.hidden = hasEnd || isLoading || rows.length === 0
      const next = element('p', ...describeList(state))
      // Screen readers read what is filled in again.
      if (next.textContent !== which.textContent) fill(which, ...next.childNodes)
      fill(footer, describeRows(state))
      fill(exported, ...describeExport(query))
      empty.hidden = rows.length > 0 || !hasTop || !hasEnd || isLoading
      if (empty.hidden) return
      const [title, ...text] = describeEmpty(query, mayWrite)
      fill(empty, icon('leaf'), element('h2', title), element('p', ...text))
    },
    /** Shows a problem with a retry button, or clears it. */
    showProblem(sentence?: string, again?: () => unknown): void {
      const text = sentence === undefined ? undefined : element('p', sentence)
      fill(problem, text, again && buildButton('Try again', again))
    },
    /** Shows whether the service answers. Returns whether it does so again. */
    showReach(next: boolean): boolean {
      const isBack = next && !isReached
      isReached = next
      showState()
      return isBack
    },
    /** Shows whether changes of others appear by themselves. */
    showStream(next: StreamState): void {
      stream = next
      showState()
    },
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

/** The tags that the page has shown, which fields for tags offer. */
function buildTags() {
  const tags = new Set<string>()
  const suggestions = element('datalist', { id: tagsId })
  return {
    element: suggestions,
    note(plants: readonly StoredPlant[]): void {
      const { size } = tags
      for (const { tag = '' } of plants) {
        if (tags.size < maxTags && tag !== '') tags.add(tag)
      }
      if (tags.size === size) return
      fill(suggestions, ...[...tags].sort().map((value) => element('option', { value })))
    },
  }
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

/** A field that applies its text while it is typed. An empty text removes the filter. */
function buildFilter(
  label: string,
  onValue: (text: string | undefined) => void,
  { list, note }: { list?: string; note?: string } = {},
): HTMLElement {
  const input = element('input', { type: 'text', list })
  const field = buildField(label, input, note)
  let timer: ReturnType<typeof setTimeout> | undefined
  let applied = ''
  const apply = () => {
    clearTimeout(timer)
    const text = input.value.toWellFormed()
    if (text === applied) return
    applied = text
    onValue(applied === '' ? undefined : applied)
  }
  input.addEventListener('input', () => {
    clearTimeout(timer)
    timer = setTimeout(apply, typingMs)
  })
  return buildForm(apply, field.element)
}

function buildGoTo(onGoTo: (id: bigint) => void): HTMLElement {
  const input = element('input', { enterkeyhint: 'go' })
  const field = buildField('Go to id', input)
  input.addEventListener('input', () => field.refuse(undefined))
  const go = () => {
    const id = toPathId(input.value)
    field.refuse(findIdFault(input.value))
    if (id !== undefined) onGoTo(id)
  }
  return buildForm(go, field.element)
}

const quote = (text: string): Child[] => ['“', element('bdi', shorten(text)), '”']
const describeTag = (tag: string): Child[] => [' with the tag ', ...quote(tag)]

/** Which plants are listed, and how many they are. */
function describeList(state: ListState): Child[] {
  const { name, tag } = state.query
  const names = name === undefined ? [] : [' whose name contains ', ...quote(name)]
  const tags = tag === undefined ? [] : describeTag(tag)
  const all = name === undefined && tag === undefined ? 'All plants' : 'Plants'
  return [all, ...tags, ...names, `: ${describeCount(state)}`]
}

function describeCount({ query, rows, hasTop, hasEnd, isLoading, searched }: ListState): string {
  const count = format(rows.length)
  if (isLoading && query.name !== undefined) {
    return `${count} so far, about ${format(searched)} searched …`
  }
  // They are being loaded, or could not be.
  if (rows[0] === undefined && !hasEnd) return '…'
  const counted = hasEnd ? count : `more than ${count}`
  if (hasTop || rows[0] === undefined) return counted
  return `${counted} from id ${rows[0].id} ${query.order === 'asc' ? 'on' : 'down'}`
}

/** What is shown of the list. */
function describeRows({ rows, hasEnd, isLoading }: ListState): string {
  const [first] = rows
  if (first === undefined) return ''
  const range = `Showing ${toCount(rows.length, 'plant')}, from id ${first.id} to ${rows.at(-1)?.id}.`
  if (isLoading) return range
  return `${range} ${hasEnd ? 'No more' : 'More'} follow.`
}

/** What to do when nothing is listed. */
function describeEmpty({ name, tag }: Query, mayWrite: boolean): [string, ...Child[]] {
  if (name !== undefined) {
    const title = `No plant has this name${tag === undefined ? '' : ' and tag'}`
    return [title, 'A part of the name is enough, in upper or lower case.']
  }
  if (tag !== undefined) {
    const text = 'Tags must match exactly, including upper and lower case.'
    return ['No plant has this tag', text]
  }
  const start = mayWrite
    ? 'Press “Add plant” to enter the first one, or “Import” to take them from a spreadsheet. '
    : 'New plants appear here. '
  const demo = element('code', 'npx plant-store serve --demo')
  return ['No plants yet', start, 'To look around with plants that are made up, run ', demo, '.']
}

function describeExport({ name, tag }: Query): Child[] {
  const which = tag === undefined ? ['Exports all plants'] : ['Exports plants', ...describeTag(tag)]
  return name === undefined ? which : [...which, ', not only those found']
}

const verbs = {
  'plant.created': 'added',
  'plant.replaced': 'changed',
  'plant.deleted': 'deleted',
} as const

/** The changes of others, in one sentence. */
export function describeChanges(changes: readonly Change[]): string {
  const [first] = changes
  if (changes.length === 1 && first !== undefined) {
    return `Somebody has ${verbs[first.type]} plant ${first.plant.id}.`
  }
  const kinds = Map.groupBy(changes, ({ type }) => verbs[type])
  const parts = [...kinds].map(([verb, { length }]) => `${verb} ${toCount(length, 'plant')}`)
  return `Others have ${parts.join(', ')}.`
}
