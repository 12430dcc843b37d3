import type { StoredPlant } from '../../../client/index.ts'
import { buildButton, element, fill, icon } from '../dom.ts'

/** What a row offers to tokens that may write. */
export interface RowActions {
  onEdit(id: bigint): void
  onDelete(id: bigint): void
}

type Shown = ReadonlyMap<bigint, { readonly plant: StoredPlant; readonly row: HTMLTableRowElement }>

/** Builds the table. */
export function buildTable(actions: RowActions, mayWrite: () => boolean) {
  const body = element('tbody', {
    animationend: ({ target }: AnimationEvent) => (target as Element).removeAttribute('data-mark'),
  })
  const corner = element('td', { class: 'actions' })
  const idHead = element('th', { scope: 'col', class: 'id' }, 'Id')
  const nameHead = element('th', { scope: 'col', class: 'name' }, 'Name')
  const tagHead = element('th', { scope: 'col', class: 'tag' }, 'Tag')
  const head = element('thead', element('tr', idHead, nameHead, tagHead, corner))
  const table = element('table', { class: 'rows', 'aria-label': 'Plants' }, head, body)
  let shown: Shown = new Map()

  function update(plants: readonly StoredPlant[], order: 'asc' | 'desc'): void {
    idHead.ariaSort = order === 'asc' ? 'ascending' : 'descending'
    corner.hidden = !mayWrite()
    const next = new Map(plants.map((plant) => [plant.id, { plant, row: toRow(plant) }]))
    for (const [id, { row }] of shown) if (!next.has(id)) row.remove()
    let present = body.firstElementChild
    for (const { row } of next.values()) {
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
    element: table,
    update,
    /** Forgets every row, because another token may have other scopes. */
    clear(): void {
      shown = new Map()
      fill(body)
    },
    /**
     * Runs a change of the page and scrolls, so that the first row on the screen stays where it is.
     * At the top of the page, everything stays but the rows.
     */
    keepInPlace(change: () => void): void {
      const top = Math.max(0, idHead.getBoundingClientRect().bottom)
      const visible = [...(scrollY > 0 ? body.rows : [])]
        .map((row) => ({ row, top: row.getBoundingClientRect().top }))
        .filter((one) => one.top >= top)
      change()
      const kept = visible.find(({ row }) => row.isConnected)
      if (kept === undefined) return
      const by = kept.row.getBoundingClientRect().top - kept.top
      if (by !== 0) scrollBy({ top: by, behavior: 'instant' })
    },
    /** Scrolls to the row of a plant. */
    reveal(id: bigint, block: 'start' | 'nearest'): void {
      shown.get(id)?.row.scrollIntoView({ block, behavior: 'instant' })
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

function toCell(kind: string, text: string, whenEmpty: string): HTMLElement {
  if (text === '') return element('td', { class: `${kind} none` }, `“” ${whenEmpty}`)
  return element('td', { class: kind, dir: 'auto' }, shorten(text))
}

/** Longer names and tags are cut. */
const maxShown = 500

export function shorten(text: string): string {
  return text.length > maxShown ? `${text.slice(0, maxShown).toWellFormed()}…` : text
}

/** A name in running text. An empty one can be seen. */
export function showName(name: string): HTMLElement {
  return element('bdi', shorten(name) || '“” no name')
}

/** A tag in running text: none, an empty one and any other can be told apart. */
export function showTag(tag: string | undefined): HTMLElement {
  return tag === undefined
    ? element('span', { class: 'none' }, 'no tag')
    : element('bdi', { class: 'chip' }, shorten(tag) || '“” empty')
}
