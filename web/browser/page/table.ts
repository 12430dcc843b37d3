import { element, fill, icon } from '../dom/element.ts'
import type { Plant, Rows } from './rows.ts'

/** What a row offers to tokens that may write. */
export interface RowActions {
  onEdit(id: bigint): void
  onDelete(id: bigint): void
}

/** The table. It shows the rows around the visible part of the page, and no others. */
export interface Table {
  readonly element: HTMLElement
  /** Shows the rows as they are now. */
  update(): void
  /** Rebuilds every row, because another token may have other scopes. */
  refill(): void
  /** The index of the first row on the screen. */
  firstVisible(): number
  /** After an update: how many rows are loaded below the screen. */
  rowsBelow(): number
  /** Moves the page by rows, so that what is on the screen stays when rows above it change. */
  shift(count: number): void
  /** Scrolls to a row, below the head of the table. */
  reveal(index: number, align: 'start' | 'nearest'): void
  /** Marks the row of a plant as changed just now. */
  mark(id: bigint): void
  /** Gives the focus to the row of a plant, or to the first one. */
  focus(id?: bigint): void
}

/** At most this many rows are in the document, some of them above the screen. */
const maxShown = 300
const shownBefore = 100
const step = 50
/** Longer names and tags are cut. */
const maxShownText = 500

export function buildTable(rows: Rows, actions: RowActions, mayWrite: () => boolean): Table {
  const body = element('tbody')
  const corner = element('td', { class: 'actions' })
  const idHead = element('th', { scope: 'col', class: 'id' }, 'Id')
  const head = element(
    'thead',
    {},
    element(
      'tr',
      {},
      idHead,
      element('th', { scope: 'col', class: 'name' }, 'Name'),
      element('th', { scope: 'col', class: 'tag' }, 'Tag'),
      corner,
    ),
  )
  const table = element('table', { 'aria-label': 'Plants' }, head, body)
  const wrapper = element('div', { class: 'rows' }, table)
  const marks = new Map<bigint, ReturnType<typeof setTimeout>>()
  let shown = new Map<bigint, { plant: Plant; row: HTMLTableRowElement }>()

  /** Lengths that the stylesheet fixes. Reading them forces a layout. */
  let lengths = readLengths()
  addEventListener('resize', () => {
    lengths = readLengths()
  })
  /** How far the first row is below the head of the page. */
  const offset = () => wrapper.getBoundingClientRect().top - lengths.top
  const firstVisible = () => Math.max(0, Math.floor(-offset() / lengths.row))
  /** The first visible row as of the last update. */
  let first = 0

  function update(): void {
    const all = rows.all()
    first = Math.min(firstVisible(), Math.max(0, all.length - 1))
    const start = Math.max(0, Math.floor(first / step) * step - shownBefore)
    const end = Math.min(all.length, start + maxShown)
    const next = new Map<bigint, { plant: Plant; row: HTMLTableRowElement }>()
    for (const plant of all.slice(start, end)) {
      const known = shown.get(plant.id)
      const row = known?.row ?? element('tr')
      // An unchanged row keeps its buttons, and the focus on them.
      if (known === undefined || !isSame(known.plant, plant)) fillRow(row, plant)
      next.set(plant.id, { plant, row })
    }
    for (const [id, { row }] of shown) if (!next.has(id)) row.remove()
    let present = body.firstElementChild
    let index = start
    for (const { row } of next.values()) {
      row.ariaRowIndex = rows.hasTop() ? String(++index + 1) : null
      if (row === present) present = present.nextElementSibling
      else body.insertBefore(row, present)
    }
    shown = next
    idHead.ariaSort = rows.order() === 'asc' ? 'ascending' : 'descending'
    table.ariaRowCount = String(rows.hasTop() && rows.hasEnd() ? all.length + 1 : -1)
    wrapper.style.paddingTop = `${start * lengths.row}px`
    wrapper.style.paddingBottom = `${(all.length - end) * lengths.row}px`
  }

  function fillRow(row: HTMLTableRowElement, { id, name, tag }: Plant): void {
    row.dataset.mark = marks.has(id) ? 'changed' : ''
    const cells = [
      element('td', { class: 'id' }, String(id)),
      toCell('name', name, 'no name'),
      tag === undefined
        ? element('td', { class: 'tag none' }, 'no tag')
        : toCell('tag', tag, 'empty'),
    ]
    // The buttons stay as they are, and so does the focus on them.
    if (row.cells.length === 0) fill(row, ...cells, buildActions(id))
    else for (const [index, cell] of cells.entries()) row.cells[index]?.replaceWith(cell)
  }

  function buildActions(id: bigint): HTMLElement | undefined {
    return mayWrite()
      ? element(
          'td',
          { class: 'actions' },
          element(
            'button',
            { type: 'button', 'aria-label': `Edit plant ${id}`, click: () => actions.onEdit(id) },
            icon('edit'),
          ),
          element(
            'button',
            {
              type: 'button',
              'aria-label': `Delete plant ${id}`,
              click: () => actions.onDelete(id),
            },
            icon('delete'),
          ),
        )
      : undefined
  }

  return {
    element: wrapper,
    update,
    refill() {
      shown = new Map()
      corner.hidden = !mayWrite()
      fill(body)
      update()
    },
    firstVisible,
    rowsBelow() {
      return rows.all().length - first - Math.ceil(innerHeight / lengths.row)
    },
    shift(count) {
      if (count !== 0) scrollBy({ top: count * lengths.row, behavior: 'instant' })
    },
    reveal(index, align) {
      const headHeight = head.getBoundingClientRect().height
      const top = offset() + index * lengths.row
      const isVisible = top >= 0 && top + headHeight + lengths.row + lengths.top <= innerHeight
      if (align === 'start' || !isVisible) scrollBy({ top, behavior: 'instant' })
    },
    mark(id) {
      clearTimeout(marks.get(id))
      const end = () => {
        marks.delete(id)
        const known = shown.get(id)
        if (known !== undefined) known.row.dataset.mark = ''
      }
      marks.set(id, setTimeout(end, markMs))
      const known = shown.get(id)
      if (known !== undefined) known.row.dataset.mark = 'changed'
    },
    focus(id) {
      const row = id === undefined ? body.rows[0] : shown.get(id)?.row
      row?.setAttribute('tabindex', '-1')
      row?.focus({ preventScroll: true })
    },
  }
}

function readLengths(): { readonly row: number; readonly top: number } {
  const style = getComputedStyle(document.documentElement)
  const read = (name: string) => Number.parseFloat(style.getPropertyValue(name))
  return { row: read('--row'), top: read('--top') }
}

function isSame(one: Plant, other: Plant): boolean {
  return one.name === other.name && one.tag === other.tag
}

/** How long a change of somebody else stays marked. */
const markMs = 6_000

function toCell(kind: string, text: string, whenEmpty: string): HTMLElement {
  if (text === '') return element('td', { class: `${kind} none` }, `“” ${whenEmpty}`)
  const isLong = text.length > maxShownText
  const shown = isLong ? `${text.slice(0, maxShownText).toWellFormed()}…` : text
  return element('td', { class: kind, dir: 'auto', title: shown }, shown)
}
