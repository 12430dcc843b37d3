/** A plant, as the service answers it. */
export interface Plant {
  readonly id: bigint
  readonly name: string
  readonly tag?: string
}

interface Edges {
  readonly hasTop: boolean
  readonly hasEnd: boolean
  readonly order: 'asc' | 'desc'
}

/** Rows of the list without a gap between them, in the order of their ids. */
export interface Rows {
  all(): readonly Plant[]
  /** Whether the first row is the first of all. */
  hasTop(): boolean
  /** Whether the last row is the last of all. */
  hasEnd(): boolean
  order(): 'asc' | 'desc'
  /** The index of the row with this id, or of the first row after its place. */
  indexOf(id: bigint): number
  at(id: bigint): Plant | undefined
  /** Replaces all rows. */
  reset(plants: readonly Plant[], edges: Edges): void
  append(plant: Plant): void
  /** Notes that no row follows the last one. */
  end(): void
  /** Inserts or replaces a row, unless its place is not among those that are loaded. */
  put(plant: Plant): 'inserted' | 'replaced' | 'same' | 'outside'
  /** Whether there was such a row. */
  remove(id: bigint): boolean
}

export function buildRows(): Rows {
  let rows: Plant[] = []
  let edges: Edges = { hasTop: true, hasEnd: false, order: 'asc' }

  function indexOf(id: bigint): number {
    let low = 0
    let high = rows.length
    while (low < high) {
      const middle = (low + high) >> 1
      const found = (rows[middle] as Plant).id
      if (edges.order === 'asc' ? found < id : found > id) low = middle + 1
      else high = middle
    }
    return low
  }

  function isOutside(index: number): boolean {
    return (index === 0 && !edges.hasTop) || (index === rows.length && !edges.hasEnd)
  }

  const found = (id: bigint): Plant | undefined => {
    const row = rows[indexOf(id)]
    return row?.id === id ? row : undefined
  }

  return {
    all: () => rows,
    hasTop: () => edges.hasTop,
    hasEnd: () => edges.hasEnd,
    order: () => edges.order,
    indexOf,
    at: found,
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
        if (row.name === plant.name && row.tag === plant.tag) return 'same'
        rows[index] = plant
        return 'replaced'
      }
      if (isOutside(index)) return 'outside'
      rows.splice(index, 0, plant)
      return 'inserted'
    },
    remove(id) {
      if (found(id) === undefined) return false
      rows.splice(indexOf(id), 1)
      return true
    },
  }
}
