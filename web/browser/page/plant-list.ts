import type { ListOptions, PlantStore } from '../../../client/index.ts'
import { int64Bounds } from '../../../src/contract/schema.ts'
import { applyChanges, type Change } from './changes.ts'
import { buildRows, type Plant } from './rows.ts'
import { buildTable, type RowActions, type Table } from './table.ts'

/** The list of plants: its table, and what is loaded of it. */
export interface PlantList {
  readonly table: Table
  /** Loads the first rows, or those from an id on, with this tag or with any. */
  open(place: { tag: string | undefined; from?: bigint }): Promise<void>
  /** Loads what the screen needs. The list grows downwards only. */
  fillScreen(): void
  /** Loads some of the rows before the first one. */
  showEarlier(): Promise<void>
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
  readonly hasTop: boolean
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
/** A list that begins so close to its end also shows rows before that. */
const fewRows = 50
/** The most rows that are kept in memory. */
const maxRows = 100_000

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

  /** Lists the next plants, or the previous ones, and tells whether these are the last. */
  async function listPart(count: number, options: ListOptions) {
    const plants: Plant[] = []
    const { signal } = life
    const isBackwards = options.order === 'desc'
    for await (const plant of parts.client().list({ ...options, tag, pageSize: count, signal })) {
      plants.push(plant)
      if (plants.length === count) break
    }
    return { plants: isBackwards ? plants.reverse() : plants, isLast: plants.length < count }
  }

  /** Lists plants from an id on, or the first ones. */
  function listFrom(count: number, from: bigint | undefined) {
    const isFirst = from === undefined || from === int64Bounds.minimum
    return listPart(count, isFirst ? {} : { after: from - 1n })
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

  async function loadNext(signal: AbortSignal): Promise<void> {
    const count = pageSize
    // Loads more at a time while somebody scrolls on.
    pageSize = Math.min(pageSize * 2, largestPage)
    const { plants, isLast } = await listPart(count, { after: rows.all().at(-1)?.id })
    if (!signal.aborted) rows.append(plants, isLast)
  }

  function fillScreen(): void {
    table.update()
    if (isLoading) return
    if (rows.hasEnd() || rows.all().length > maxRows || table.rowsBelow() >= ahead) return
    load(loadNext).then(fillScreen, (error: unknown) => parts.onFailure(error, fillScreen))
  }

  async function open(next: { tag: string | undefined; from?: bigint }): Promise<void> {
    renew()
    tag = next.tag
    pageSize = firstPage
    await load(async (signal) => {
      const { from } = next
      const { plants, isLast } = await listFrom(firstPage, from)
      if (signal.aborted) return
      rows.reset(plants, { hasTop: from === undefined, hasEnd: isLast })
      if (!rows.hasTop() && isLast && plants.length < fewRows) await loadEarlier(signal)
      pageSize = firstPage * 2
    })
  }

  async function loadEarlier(signal: AbortSignal): Promise<void> {
    const after = rows.all()[0]?.id
    const { plants, isLast } = await listPart(firstPage, { order: 'desc', after })
    if (signal.aborted) return
    rows.reset([...plants, ...rows.all()], { hasTop: isLast, hasEnd: rows.hasEnd() })
  }

  function applyToRows(changes: readonly Change[]): readonly Change[] {
    return applyChanges(changes, { rows, table, tag })
  }

  return {
    table,
    open,
    fillScreen,
    async showEarlier() {
      renew()
      await load(loadEarlier)
    },
    async refresh() {
      renew()
      const start = Math.max(0, table.firstVisible() - firstPage / 2)
      const isFirst = start === 0 && rows.hasTop()
      const from = isFirst ? undefined : rows.all()[start]?.id
      await load(async (signal) => {
        const { plants, isLast } = await listFrom(firstPage * 2, from)
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
      hasTop: rows.hasTop(),
      isWhole: rows.hasTop() && rows.hasEnd(),
      isLoading,
      tag,
    }),
    close: () => life.abort(),
  }
}
