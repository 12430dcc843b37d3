import type { ListOptions, PlantStore, StoredPlant } from '../../../client/index.ts'
import { limits } from '../../../src/contract/limits.ts'
import { int64Bounds } from '../../../src/contract/schema.ts'
import { applyChanges, type Change } from './changes.ts'
import { buildRows } from './rows.ts'
import { buildTable, type RowActions } from './table.ts'

/** Which plants are listed, and in which order. */
export interface Query {
  readonly tag: string | undefined
  /** A text that the name contains. */
  readonly name: string | undefined
  readonly order: 'asc' | 'desc'
}

export interface PlantListParts {
  client(): PlantStore
  readonly actions: RowActions
  mayWrite(): boolean
  /** Called after each change of what is loaded. */
  onChange(): void
  /** Called when rows could not be loaded; `again` tries once more. */
  onFailure(error: unknown, again: () => void): void
  /** Called when they could be loaded after all. */
  onRecovery(): void
}

const firstPage = 200
const nextPage = 1_000
/** How many rows beyond the screen are loaded in advance; fewer if they have to be searched for. */
const ahead = 150
const searchedAhead = 10
/** How many plants a search finds before it waits for somebody to scroll. */
const foundAtOnce = 50
/** A list with fewer rows than this also loads earlier ones. */
const fewRows = 50
/** The most rows that are kept in memory. */
export const maxRows = 100_000
/** The most changes that are kept during a load: far more than come during one of its requests. */
const maxMeanwhile = 10_000

export type PlantList = ReturnType<typeof buildPlantList>
export type ListState = ReturnType<PlantList['describe']>

/** Builds the list of plants: its table, and what is loaded of it. */
export function buildPlantList(parts: PlantListParts) {
  const { onChange } = parts
  const rows = buildRows()
  const table = buildTable(rows, parts.actions, parts.mayWrite)
  let life = new AbortController()
  let query: Query = { tag: undefined, name: undefined, order: 'asc' }
  let isLoading = false
  let isFailing = false
  /** Settles with the last load, and never rejects. */
  let loading = Promise.resolve()
  /** About how many plants the search has examined so far. */
  let searched = 0
  /** How many requests of the current load of a search were answered. */
  let answers = 0
  /** Changes that arrived during a load, whose rows may not include them. */
  let meanwhile: Change[] = []

  /** Lists up to `count` plants. `isLast` tells whether the list ends with them. */
  async function listPart(count: number, options: ListOptions) {
    const wanted = { ...query, ...options, pageSize: count, signal: life.signal }
    const plants: StoredPlant[] = []
    for await (const plant of parts.client().list(wanted)) {
      plants.push(plant)
      if (plants.length === count) break
    }
    return { plants, isLast: plants.length < count }
  }

  /** The id after which a list begins with this one. */
  function toAfter(from: bigint | undefined): bigint | undefined {
    const [first, step] =
      query.order === 'asc' ? [int64Bounds.minimum, -1n] : [int64Bounds.maximum, 1n]
    return from === undefined || from === first ? undefined : from + step
  }

  /** Cancels pending loads: the rows start over. */
  function renew(): void {
    life.abort()
    life = new AbortController()
  }

  /** Loads rows, one part at a time, and then applies the changes that came in the meantime. */
  function load(task: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const loaded = loadNow(task)
    loading = loaded.catch(() => {})
    return loaded
  }

  async function loadNow(task: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = life
    isLoading = true
    meanwhile = []
    onChange()
    try {
      await task(signal)
      if (!signal.aborted) applyToRows(meanwhile)
    } catch (error) {
      // Another load has replaced this one.
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

  /** Loads the next rows. Those of a search appear as they are found. */
  async function loadNext(signal: AbortSignal, after = rows.all().at(-1)?.id): Promise<void> {
    const count = query.name === undefined ? nextPage : foundAtOnce
    let found = 0
    answers = 0
    for await (const plant of parts.client().list({ ...query, after, pageSize: count, signal })) {
      if (signal.aborted) return
      rows.append(plant)
      if (++found === count) return
    }
    if (!signal.aborted) rows.end()
  }

  /** Loads what the screen needs. The list grows downwards only. */
  function fillScreen(): void {
    const below = table.update()
    if (isLoading || rows.edges().hasEnd || rows.all().length > maxRows) return
    if (below >= (query.name === undefined ? ahead : searchedAhead)) return
    load(loadNext).then(
      () => {
        if (isFailing) parts.onRecovery()
        isFailing = false
        fillScreen()
      },
      (error: unknown) => {
        isFailing = true
        parts.onFailure(error, fillScreen)
      },
    )
  }

  /** Loads the first rows, or those from an id on. */
  async function open({ from, ...next }: Query & { from?: bigint | undefined }): Promise<void> {
    renew()
    const edges = { hasTop: from === undefined, order: next.order }
    // Rows of another query would pass for those of this one, for ever if it fails.
    if (next.name !== undefined || !isEqual(next, query)) {
      rows.reset([], { ...edges, hasEnd: false })
      table.update()
    }
    query = next
    searched = 0
    await load(async (signal) => {
      if (query.name !== undefined) return loadNext(signal, toAfter(from))
      const { plants, isLast } = await listPart(firstPage, { after: toAfter(from) })
      if (signal.aborted) return
      rows.reset(plants, { ...edges, hasEnd: isLast })
      if (!edges.hasTop && isLast && plants.length < fewRows) await loadEarlier(signal)
    })
  }

  async function loadEarlier(signal: AbortSignal): Promise<void> {
    const order = query.order === 'asc' ? 'desc' : 'asc'
    const { plants, isLast } = await listPart(firstPage, { order, after: rows.all()[0]?.id })
    if (signal.aborted) return
    rows.reset([...plants.reverse(), ...rows.all()], { ...rows.edges(), hasTop: isLast })
  }

  function applyToRows(changes: readonly Change[]): readonly Change[] {
    return applyChanges(changes, { rows, table, isListed: (plant) => isListed(plant, query) })
  }

  return {
    table,
    open,
    fillScreen,
    /** Loads some of the rows before the first one. */
    async showEarlier(): Promise<void> {
      renew()
      await load(loadEarlier)
    },
    /** Reads the visible rows again and drops the others, after changes that were not reported. */
    async refresh(): Promise<void> {
      // Somebody may have asked for another part of the list just now.
      if (query.name === undefined) await loading
      if (query.name !== undefined) return open(query)
      const first = table.firstVisible()
      const id = rows.all()[first]?.id
      const start = Math.max(0, first - firstPage / 2)
      const isFirst = start === 0 && rows.edges().hasTop
      await open({ ...query, from: isFirst ? undefined : rows.all()[start]?.id })
      if (first > 0 && id !== undefined) table.reveal(rows.indexOf(id), 'start')
      fillScreen()
    },
    /** Shows a plant: scrolls to it, or to the next one. Resolves to the plant that it shows. */
    async goTo(id: bigint): Promise<StoredPlant | undefined> {
      const index = rows.indexOf(id)
      const isBefore = index === 0 && !rows.edges().hasTop && rows.find(id) === undefined
      const isAfter = index === rows.all().length && !rows.edges().hasEnd
      if (isBefore || isAfter) await open({ ...query, from: id })
      const shown = Math.min(rows.indexOf(id), rows.all().length - 1)
      table.update()
      table.reveal(Math.max(0, shown), 'start')
      table.update()
      fillScreen()
      return rows.all()[shown]
    },
    /** Scrolls to a plant that somebody has just changed here, if it is not on the screen. */
    async show(plant: StoredPlant): Promise<void> {
      if (isListed(plant, query)) {
        if (rows.find(plant.id) === undefined) await open({ ...query, from: plant.id })
        table.reveal(rows.indexOf(plant.id), 'nearest')
      }
      fillScreen()
    },
    /** Applies changes, oldest first. Returns those that changed what is loaded. */
    apply(changes: readonly Change[]): readonly Change[] {
      if (isLoading) meanwhile = [...meanwhile, ...changes].slice(-maxMeanwhile)
      const seen = applyToRows(changes)
      if (seen.length > 0) onChange()
      return seen
    },
    indexOf: rows.indexOf,
    /** Notes that the service has answered a part of a search. */
    noteSearched(): void {
      // The one before, if any, did not find enough: it has examined as many as it may.
      if (answers++ > 0) searched += limits.examinedPlants
      table.update()
      onChange()
    },
    describe: () => ({ query, rows: rows.all(), ...rows.edges(), isLoading, searched }),
    close: (): void => life.abort(),
  }
}

function isEqual(one: Query, other: Query): boolean {
  return one.tag === other.tag && one.name === other.name && one.order === other.order
}

/** Compares names as the service does. */
function isListed(plant: StoredPlant, { tag, name }: Query): boolean {
  if (tag !== undefined && plant.tag !== tag) return false
  return name === undefined || plant.name.toUpperCase().includes(name.toUpperCase())
}
