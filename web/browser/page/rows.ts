import type { StoredPlant } from '../../../client/index.ts'

interface Edges {
  /** Whether the first row is the first of all. */
  readonly hasTop: boolean
  /** Whether the last row is the last of all. */
  readonly hasEnd: boolean
  readonly order: 'asc' | 'desc'
}

export type Rows = ReturnType<typeof buildRows>

/** Builds the rows of the list, without a gap between them, in the order of their ids. */
export function buildRows() {
  let rows: StoredPlant[] = []
  let edges: Edges = { hasTop: true, hasEnd: false, order: 'asc' }

  /** The index of the row with this id, or of the first row after its place. */
  function indexOf(id: bigint): number {
    let low = 0
    let high = rows.length
    while (low < high) {
      const middle = (low + high) >> 1
      const found = (rows[middle] as StoredPlant).id
      if (edges.order === 'asc' ? found < id : found > id) low = middle + 1
      else high = middle
    }
    return low
  }

  function find(id: bigint): StoredPlant | undefined {
    const row = rows[indexOf(id)]
    return row?.id === id ? row : undefined
  }

  return {
    all: (): readonly StoredPlant[] => rows,
    edges: (): Edges => edges,
    indexOf,
    find,
    /** Replaces all rows. */
    reset(plants: readonly StoredPlant[], next: Edges): void {
      rows = [...plants]
      edges = next
    },
    append: (plant: StoredPlant): void => void rows.push(plant),
    /** Notes that no row follows the last one. */
    end(): void {
      edges = { ...edges, hasEnd: true }
    },
    /**
     * Inserts or replaces a row, unless its place is not among those that are loaded. Returns
     * whether that changed anything.
     */
    put(plant: StoredPlant): boolean {
      const index = indexOf(plant.id)
      const row = rows[index]
      if (row?.id === plant.id) {
        rows[index] = plant
        return row.name !== plant.name || row.tag !== plant.tag
      }
      const isBefore = index === 0 && !edges.hasTop
      const isAfter = index === rows.length && !edges.hasEnd
      if (isBefore || isAfter) return false
      rows.splice(index, 0, plant)
      return true
    },
    /** Removes a row. Returns whether there was one. */
    remove(id: bigint): boolean {
      if (find(id) === undefined) return false
      rows.splice(indexOf(id), 1)
      return true
    },
  }
}
