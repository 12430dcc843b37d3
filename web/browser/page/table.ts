import type { StoredPlant } from '../../../client/index.ts'
import { element, fill, icon } from '../dom/element.ts'
import { buildButton } from '../dom/form.ts'
import { shorten } from './plant-text.ts'
import type { Rows } from './rows.ts'

/** What a row offers to tokens that may write. */
export interface RowActions {
  onEdit(id: bigint): void
  onDelete(id: bigint): void
}

/** At most this many rows are in the document, some of them above the screen. */
const maxShown = 300
const shownBefore = 100
const step = 50

type Shown = ReadonlyMap<bigint, { readonly plant: StoredPlant; readonly row: HTMLTableRowElement }>

export type Table = ReturnType<typeof buildTable>

/** Builds the table. It shows the rows around the visible part of the page, and no others. */
export function buildTable(rows: Rows, actions: RowActions, mayWrite: () => boolean) {
  const body = element('tbody', {
    animationend: ({ target }: AnimationEvent) => (target as Element).removeAttribute('data-mark'),
  })
  const corner = element('td', { class: 'actions' })
  const idHead = element('th', { scope: 'col', class: 'id' }, 'Id')
  const nameHead = element('th', { scope: 'col', class: 'name' }, 'Name')
  const tagHead = element('th', { scope: 'col', class: 'tag' }, 'Tag')
  const head = element('thead', element('tr', idHead, nameHead, tagHead, corner))
  const table = element('table', { 'aria-label': 'Plants' }, head, body)
  const wrapper = element('div', { class: 'rows' }, table)
  let shown: Shown = new Map()

  /** How far the first row is below the head of the page. */
  const offset = () => wrapper.getBoundingClientRect().top - readLength('--top')
  /** The index of the first row on the screen. */
  const firstVisible = () => Math.max(0, Math.floor(-offset() / readLength('--row')))

  /** Shows the rows as they are now. Returns how many are loaded below the screen. */
  function update(): number {
    const all = rows.all()
    const rowPx = readLength('--row')
    const first = Math.min(firstVisible(), Math.max(0, all.length - 1))
    const start = Math.max(0, Math.floor(first / step) * step - shownBefore)
    const end = Math.min(all.length, start + maxShown)
    showRows(all.slice(start, end), start)
    const { hasTop, hasEnd, order } = rows.edges()
    idHead.ariaSort = order === 'asc' ? 'ascending' : 'descending'
    table.ariaRowCount = String(hasTop && hasEnd ? all.length + 1 : -1)
    wrapper.style.paddingTop = `${start * rowPx}px`
    wrapper.style.paddingBottom = `${(all.length - end) * rowPx}px`
    return all.length - first - Math.ceil(innerHeight / rowPx)
  }

  function showRows(plants: readonly StoredPlant[], start: number): void {
    const next = new Map(plants.map((plant) => [plant.id, { plant, row: toRow(plant) }]))
    for (const [id, { row }] of shown) if (!next.has(id)) row.remove()
    let present = body.firstElementChild
    // The head is the first row.
    let index = start + 1
    for (const { row } of next.values()) {
      row.ariaRowIndex = rows.edges().hasTop ? String(++index) : null
      if (row === present) present = present.nextElementSibling
      else body.insertBefore(row, present)
    }
    shown = next
  }

  /** The row of a plant. One that is shown keeps its buttons, and so the focus on them. */
  function toRow(plant: StoredPlant): HTMLTableRowElement {
    const { id, name, tag } = plant
    const known = shown.get(id)
    if (known?.plant.name === name && known.plant.tag === tag) return known.row
    const cells = [
      element('td', { class: 'id' }, String(id)),
      toCell('name', name, 'no name'),
      tag === undefined
        ? element('td', { class: 'tag none' }, 'no tag')
        : toCell('tag', tag, 'empty'),
    ]
    if (known === undefined) return element('tr', ...cells, buildActions(id))
    for (const [index, cell] of cells.entries()) known.row.cells[index]?.replaceWith(cell)
    return known.row
  }

  function buildActions(id: bigint): HTMLElement | undefined {
    if (!mayWrite()) return undefined
    const edit = { 'aria-label': `Edit plant ${id}` }
    const remove = { 'aria-label': `Delete plant ${id}` }
    return element(
      'td',
      { class: 'actions' },
      buildButton(icon('edit'), () => actions.onEdit(id), edit),
      buildButton(icon('delete'), () => actions.onDelete(id), remove),
    )
  }

  return {
    element: wrapper,
    update,
    /** Rebuilds every row, because another token may have other scopes. */
    refill(): void {
      shown = new Map()
      corner.hidden = !mayWrite()
      fill(body)
      update()
    },
    firstVisible,
    /** Moves the page by rows, so that what is on the screen stays when rows above it change. */
    shift(count: number): void {
      if (count !== 0) scrollBy({ top: count * readLength('--row'), behavior: 'instant' })
    },
    /** Scrolls to a row, below the head of the table. */
    reveal(index: number, align: 'start' | 'nearest'): void {
      const rowPx = readLength('--row')
      const top = offset() + index * rowPx
      const end = top + head.getBoundingClientRect().height + rowPx + readLength('--top')
      const isVisible = top >= 0 && end <= innerHeight
      if (align === 'start' || !isVisible) scrollBy({ top, behavior: 'instant' })
    },
    /** Marks the row of a plant as changed just now, for as long as the stylesheet says. */
    mark(id: bigint): void {
      shown.get(id)?.row.setAttribute('data-mark', 'changed')
    },
    /** Gives the focus to the row of a plant, or to the first one. */
    focus(id?: bigint): void {
      const row = id === undefined ? body.rows[0] : shown.get(id)?.row
      row?.setAttribute('tabindex', '-1')
      row?.focus({ preventScroll: true })
    },
  }
}

/** A length that the stylesheet sets. It depends on the width of the screen. */
function readLength(name: '--row' | '--top'): number {
  return Number.parseFloat(getComputedStyle(document.documentElement).getPropertyValue(name))
}

function toCell(kind: string, text: string, whenEmpty: string): HTMLElement {
  if (text === '') return element('td', { class: `${kind} none` }, `“” ${whenEmpty}`)
  const shown = shorten(text)
  return element('td', { class: kind, dir: 'auto', title: shown }, shown)
}
