import type { PlantEvent, PlantStore, StoredPlant } from '../../../client/index.ts'
import { limits } from '../../../src/contract/limits.ts'
import { int64Bounds } from '../../../src/contract/schema.ts'
import { buildButton, element, icon } from '../dom.ts'

/** A change of a plant. */
export type Change = Pick<PlantEvent, 'type' | 'plant'>

/** Which plants are listed, and in which order. */
export interface Query {
  readonly tag: string | undefined
  /** A text that the name contains. */
  readonly name: string | undefined
  readonly order: 'asc' | 'desc'
}

export interface PlantListParts extends RowActions {
  client(): PlantStore
  /** Called after each change of what is loaded. */
  onChange(): void
}

/** How many plants are loaded at a time. */
const step = 100
/** The largest page that the service answers. */
const maxPage = 1_000
/** The most changes that are kept during a load: far more than come during one of its requests. */
const maxMeanwhile = 10_000

export type PlantList = ReturnType<typeof buildPlantList>
export type ListState = ReturnType<PlantList['describe']>

/** Builds the list of plants: its table, and what is loaded of it, without a gap between rows. */
export function buildPlantList(parts: PlantListParts) {
  const table = buildTable(parts)
  let query: Query = { tag: undefined, name: undefined, order: 'asc' }
  let rows: StoredPlant[] = []
  /** Whether the first row is the first of all, and the last row the last of all. */
  let hasTop = true
  let hasEnd = false
  /** How many rows were asked for. Changes of others add few more. */
  let asked = step
  let life = new AbortController()
  let isLoading = false
  /** Settles with the last load, and never rejects. */
  let loading = Promise.resolve()
  /** About how many plants the search has examined so far. */
  let searched = 0
  /** Changes that arrived during a load, whose rows may not include them. */
  let meanwhile: Change[] = []

  const showRows = () => table.update(rows, query.order)

  /** The index of the row with this id, or of the first row after its place. */
  function indexOf(id: bigint): number {
    const isAsc = query.order === 'asc'
    const index = rows.findIndex((row) => (isAsc ? row.id >= id : row.id <= id))
    return index === -1 ? rows.length : index
  }

  /** Whether the place of an id is before or after what is loaded. */
  function isBeyond(id: bigint): boolean {
    const index = indexOf(id)
    if (rows[index]?.id === id) return false
    return (index === 0 && !hasTop) || (index === rows.length && !hasEnd)
  }

  /** The id after which a list begins with this one. */
  function toAfter(from: bigint | undefined): bigint | undefined {
    const [first, before] =
      query.order === 'asc' ? [int64Bounds.minimum, -1n] : [int64Bounds.maximum, 1n]
    return from === undefined || from === first ? undefined : from + before
  }

  /** Adds up to `count` plants to some rows. Resolves to whether the list ends with them. */
  async function read(
    target: StoredPlant[],
    after: bigint | undefined,
    { count = step, order = query.order } = {},
  ): Promise<boolean> {
    const { signal } = life
    const end = target.length + count
    // One extra plant shows whether more follow.
    const pageSize = Math.min(count + 1, maxPage)
    for await (const plant of parts.client().list({ ...query, order, after, pageSize, signal })) {
      signal.throwIfAborted()
      if (target.length >= end) return false
      target.push(plant)
    }
    return true
  }

  /** Loads rows instead of what is being loaded, then applies the changes that came meanwhile. */
  function load(task: () => Promise<void>): Promise<void> {
    life.abort()
    life = new AbortController()
    const loaded = loadNow(task, life.signal)
    loading = loaded.catch(() => {})
    return loaded
  }

  async function loadNow(task: () => Promise<void>, signal: AbortSignal): Promise<void> {
    isLoading = true
    meanwhile = []
    parts.onChange()
    try {
      await task()
    } catch (error) {
      // Another load has replaced this one.
      if (!signal.aborted) throw error
    } finally {
      if (!signal.aborted) {
        isLoading = false
        asked = Math.max(step, rows.length)
        showRows()
        applyToRows(meanwhile)
        parts.onChange()
      }
    }
  }

  /** Loads the first rows, or those from an id on. */
  function open({ from, ...next }: Query & { from?: bigint | undefined }): Promise<void> {
    const isSame = next.tag === query.tag && next.name === query.name && next.order === query.order
    query = next
    searched = 0
    // Rows of the query before must not pass for rows of this one. A search shows rows one by one.
    if (!isSame || next.name !== undefined) replaceRows([], from, false)
    const target = rows.length === 0 ? rows : []
    showRows()
    return load(async () => {
      const isLast = await read(target, toAfter(from))
      replaceRows(target, from, isLast)
      if (!hasTop && hasEnd && rows.length < step) await readEarlier()
    })
  }

  function replaceRows(next: StoredPlant[], from: bigint | undefined, isLast: boolean): void {
    rows = next
    hasTop = from === undefined
    hasEnd = isLast
  }

  async function readEarlier(): Promise<void> {
    const earlier: StoredPlant[] = []
    const order = query.order === 'asc' ? 'desc' : 'asc'
    hasTop = await read(earlier, rows[0]?.id, { order })
    rows.unshift(...earlier.reverse())
  }

  /** Puts a plant in its place, unless that is not among the loaded rows. Returns its effect. */
  function put(plant: StoredPlant): boolean {
    const index = indexOf(plant.id)
    const row = rows[index]
    if (isBeyond(plant.id)) return false
    rows.splice(index, row?.id === plant.id ? 1 : 0, plant)
    return row?.id !== plant.id || row.name !== plant.name || row.tag !== plant.tag
  }

  function remove(id: bigint): boolean {
    const index = indexOf(id)
    if (rows[index]?.id !== id) return false
    rows.splice(index, 1)
    return true
  }

  /** Applies changes, oldest first. Returns those that had an effect. What is visible stays. */
  function applyToRows(changes: readonly Change[]): readonly Change[] {
    const seen = changes.filter(({ type, plant }) => {
      const isGone = type === 'plant.deleted' || !isListed(plant, query)
      return isGone ? remove(plant.id) : put(plant)
    })
    if (rows.length > asked + step) {
      rows.length = asked
      hasEnd = false
    }
    if (seen.length > 0) table.keepInPlace(showRows)
    return seen
  }

  return {
    table,
    open,
    /** Loads the rows after the last one. Resolves to the first of them. */
    async showMore(): Promise<StoredPlant | undefined> {
      await loading
      const last = rows.at(-1)?.id
      await load(async () => {
        hasEnd = await read(rows, last)
      })
      return last === undefined ? rows[0] : rows[indexOf(last) + 1]
    },
    /** Loads rows before the first one. Resolves to the first of all, if that is among them. */
    async showEarlier(): Promise<StoredPlant | undefined> {
      await loading
      await load(readEarlier)
      return hasTop ? rows[0] : undefined
    },
    /** Reads all rows again, after changes that were not reported. */
    async refresh(): Promise<void> {
      // Somebody may have asked for another part of the list just now.
      await loading
      await load(async () => {
        const next: StoredPlant[] = []
        const from = hasTop ? undefined : rows[0]?.id
        const isLast = await read(next, toAfter(from), { count: Math.max(step, rows.length) })
        replaceRows(next, from, isLast)
        table.keepInPlace(showRows)
      })
    },
    /** Shows a plant: scrolls to it, or to the next one. Resolves to the plant that it shows. */
    async goTo(id: bigint): Promise<StoredPlant | undefined> {
      if (isBeyond(id)) await open({ ...query, from: id })
      const shown = rows[Math.min(indexOf(id), rows.length - 1)]
      if (shown !== undefined) table.reveal(shown.id, 'start')
      return shown
    },
    /** Scrolls to a plant that somebody has just changed here, if it is not on the screen. */
    async show(plant: StoredPlant): Promise<void> {
      if (!isListed(plant, query)) return
      if (rows[indexOf(plant.id)]?.id !== plant.id) await open({ ...query, from: plant.id })
      table.reveal(plant.id, 'nearest')
    },
    /** Applies changes, oldest first. Returns those that changed what is loaded. */
    apply(changes: readonly Change[]): readonly Change[] {
      if (isLoading) meanwhile = [...meanwhile, ...changes].slice(-maxMeanwhile)
      const seen = applyToRows(changes)
      if (seen.length > 0) parts.onChange()
      return seen
    },
    indexOf,
    /** Notes that the service has answered a part of a search, and shows what it has found. */
    noteSearched(): void {
      searched += limits.examinedPlants
      showRows()
      parts.onChange()
    },
    describe: () => ({ query, rows, hasTop, hasEnd, isLoading, searched }),
    close: (): void => life.abort(),
  }
}

/** Compares names as the service does. */
function isListed(plant: StoredPlant, { tag, name }: Query): boolean {
  if (tag !== undefined && plant.tag !== tag) return false
  return name === undefined || plant.name.toUpperCase().includes(name.toUpperCase())
}

/** What a row offers. The stylesheet hides it from tokens that may only read. */
interface RowActions {
  onEdit(id: bigint): void
  onDelete(id: bigint): void
}

/** Builds the table. */
function buildTable(actions: RowActions) {
  const body = element('tbody', {
    animationend: ({ target }: AnimationEvent) => (target as Element).removeAttribute('data-mark'),
  })
  const idHead = element('th', { scope: 'col', class: 'id' }, 'Id')
  const nameHead = element('th', { scope: 'col', class: 'name' }, 'Name')
  const tagHead = element('th', { scope: 'col', class: 'tag' }, 'Tag')
  const corner = element('td', { class: 'actions' })
  const head = element('thead', element('tr', idHead, nameHead, tagHead, corner))
  const table = element('table', { class: 'rows', 'aria-label': 'Plants' }, head, body)
  let shown: ReadonlyMap<bigint, { plant: StoredPlant; row: HTMLTableRowElement }> = new Map()

  function update(plants: readonly StoredPlant[], order: 'asc' | 'desc'): void {
    idHead.ariaSort = order === 'asc' ? 'ascending' : 'descending'
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

  function buildActions(id: bigint): HTMLElement {
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
    /** Gives the focus to the row of a plant. */
    focus(id: bigint): void {
      const row = shown.get(id)?.row
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
