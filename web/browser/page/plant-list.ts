import type { PlantStore } from '../../../client/index.ts'
import { applyChanges, type Change } from './changes.ts'
import { listAfter, listBefore, listFrom } from './paging.ts'
import { buildRows, type Plant } from './rows.ts'
import { buildTable, type RowActions, type Table } from './table.ts'

/** The list of plants: its table, and what is loaded of it. */
export interface PlantList {
  readonly table: Table
  /** Loads the first rows, or those from an id on, with this tag or with any. */
  open(place: { tag: string | undefined; from?: bigint }): Promise<void>
  /** Loads what the screen needs. */
  fillScreen(): void
  /** Shows a plant: scrolls to it, or to the next one. Resolves to the plant that it shows. */
  goTo(id: bigint): Promise<Plant | undefined>
  /** Reads the visible rows again and drops the others, after changes that were not reported. */
  refresh(): Promise<void>
  /** Scrolls to a plant that somebody has just changed here, if it is not on the screen. */
  show(plant: Plant): Promise<void>
  /** Applies changes, oldest first. Returns those that changed what is loaded. */
  apply(events: readonly Change[]): readonly Change[]
  /** What is loaded, in words. */
  describe(): ListState
  close(): void
}

export interface ListState {
  readonly count: number
  readonly isWhole: boolean
  readonly isLoading: boolean
  readonly tag: string | undefined
}

export interface PlantListParts {
  client(): PlantStore
  readonly actions: RowActions
  mayWrite(): boolean
  /** Called after each change of what is loaded. */
  onChange(): void
  /** Called when rows could not be loaded; `again` tries once more. */
  onFailure(error: unknown, again: () => void): void
}

const firstPage = 200
const largestPage = 1_000
/** How many rows beyond the screen are loaded in advance. */
const ahead = 150

export function buildPlantList(parts: PlantListParts): PlantList {
  const { onChange } = parts
  const rows = buildRows()
  const table = buildTable(rows, parts.actions, parts.mayWrite)
  let life = new AbortController()
  let tag: string | undefined
  let pageSize = firstPage
  let isLoading = false
  /** Changes that arrived while rows were on their way, which may not have them yet. */
  let meanwhile: Change[] = []

  function place() {
    return { tag, signal: life.signal }
  }

  /** Ends all that is on its way, because the rows start anew. */
  function renew(): void {
    life.abort()
    life = new AbortController()
  }

  /** Loads rows, one part at a time, and then applies the changes that came in the meantime. */
  async function load(task: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = life
    isLoading = true
    meanwhile = []
    onChange()
    try {
      await task(signal)
      if (!signal.aborted) applyToRows(meanwhile)
    } catch (error) {
      // Somebody has asked for other rows: nobody waits for these.
      if (!signal.aborted) throw error
    } finally {
      if (!signal.aborted) {
        isLoading = false
        meanwhile = []
        table.update()
        onChange()
      }
    }
  }

  function loadInBackground(task: (signal: AbortSignal) => Promise<void>): void {
    load(task).then(fillScreen, (error: unknown) => parts.onFailure(error, fillScreen))
  }

  async function loadNext(signal: AbortSignal): Promise<void> {
    const count = pageSize
    // Loads more at a time while somebody scrolls on.
    pageSize = Math.min(pageSize * 2, largestPage)
    const { plants, isLast } = await listAfter(
      parts.client(),
      rows.all().at(-1)?.id,
      count,
      place(),
    )
    if (signal.aborted) return
    rows.append(plants, isLast)
    table.shift(-rows.trim(table.firstVisible()))
  }

  async function loadBefore(signal: AbortSignal): Promise<void> {
    const first = rows.all()[0]?.id as bigint
    const { plants, isLast } = await listBefore(parts.client(), first, 200, place())
    if (signal.aborted) return
    rows.prepend(plants, isLast)
    table.update()
    table.shift(plants.length)
    rows.trim(table.firstVisible())
  }

  function fillScreen(): void {
    table.update()
    if (isLoading) return
    if (!rows.hasEnd() && table.rowsBelow() < ahead) loadInBackground(loadNext)
    else if (!rows.hasTop() && table.firstVisible() < ahead) loadInBackground(loadBefore)
  }

  async function open(next: { tag: string | undefined; from?: bigint }): Promise<void> {
    renew()
    tag = next.tag
    pageSize = firstPage
    await load(async (signal) => {
      const { from } = next
      const isFirst = from === undefined
      const { plants, isLast } = await listFrom(parts.client(), from, firstPage, place())
      if (signal.aborted) return
      rows.reset(plants, { hasTop: isFirst, hasEnd: isLast })
      // An id beyond the last plant: the rows before it are all that there is to show.
      if (!isFirst && plants.length === 0) {
        const before = await listBefore(parts.client(), from, 200, place())
        rows.reset(before.plants, { hasTop: before.isLast, hasEnd: true })
      }
      pageSize = firstPage * 2
    })
  }

  function applyToRows(changes: readonly Change[]): readonly Change[] {
    return applyChanges(changes, { rows, table, tag })
  }

  return {
    table,
    open,
    fillScreen,
    async refresh() {
      renew()
      const start = Math.max(0, table.firstVisible() - firstPage / 2)
      const isFirst = start === 0 && rows.hasTop()
      const from = isFirst ? undefined : rows.all()[start]?.id
      await load(async (signal) => {
        const { plants, isLast } = await listFrom(parts.client(), from, firstPage * 2, place())
        if (signal.aborted) return
        rows.reset(plants, { hasTop: isFirst, hasEnd: isLast })
        table.update()
        table.shift(-start)
      })
    },
    async goTo(id) {
      const index = rows.indexOf(id)
      const isBefore = index === 0 && !rows.hasTop() && rows.at(id) === undefined
      const isAfter = index === rows.all().length && !rows.hasEnd()
      if (isBefore || isAfter) await open({ tag, from: id })
      const shown = Math.min(rows.indexOf(id), rows.all().length - 1)
      table.update()
      table.reveal(Math.max(0, shown), 'start')
      table.update()
      fillScreen()
      return rows.all()[shown]
    },
    async show(plant) {
      const isListed = tag === undefined || plant.tag === tag
      if (isListed && rows.at(plant.id) === undefined) await open({ tag, from: plant.id })
      if (isListed) table.reveal(rows.indexOf(plant.id), 'nearest')
      fillScreen()
    },
    apply(changes) {
      if (isLoading) meanwhile.push(...changes)
      const seen = applyToRows(changes)
      if (seen.length > 0) onChange()
      return seen
    },
    describe: () => ({
      count: rows.all().length,
      isWhole: rows.hasTop() && rows.hasEnd(),
      isLoading,
      tag,
    }),
    close: () => life.abort(),
  }
}
