import type { StoredPlant } from '../../../client/index.ts'

interface Edges {
  readonly hasTop: boolean
  readonly hasEnd: boolean
  readonly order: 'asc' | 'desc'
}

/** Rows of the list without a gap between them, in the order of their ids. */
export interface Rows {
  all(): readonly StoredPlant[]
  /** Whether the first row is the first of all. */
  hasTop(): boolean
  /** Whether the last row is the last of all. */
  hasEnd(): boolean
  order(): 'asc' | 'desc'
  /** The index of the row with this id, or of the first row after its place. */
  indexOf(id: bigint): number
  find(id: bigint): StoredPlant | undefined
  /** Replaces all rows. */
  reset(plants: readonly StoredPlant[], edges: Edges): void
  append(plant: StoredPlant): void
  /** Notes that no row follows the last one. */
  end(): void
  /**
   * Inserts or replaces a row, unless its place is not among those that are loaded. Returns whether
   * that changed anything.
   */
  put(plant: StoredPlant): boolean
  /** Removes a row. Returns whether there was one. */
  remove(id: bigint): boolean
}

export function buildRows(): Rows {
  let rows: StoredPlant[] = []
  let edges: Edges = { hasTop: true, hasEnd: false, order: 'asc' }

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
    all: () => rows,
    hasTop: () => edges.hasTop,
    hasEnd: () => edges.hasEnd,
    order: () => edges.order,
    indexOf,
    find,
    reset(plants, next) {
      rows = [...plants]
      edges = next
    },
    append: (plant) => void rows.push(plant),
    end() {
      edges = { ...edges, hasEnd: true }
    },
    put(plant) {
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
    remove(id) {
      if (find(id) === undefined) return false
      rows.splice(indexOf(id), 1)
      return true
    },
  }
}
