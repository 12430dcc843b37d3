/** A plant, as the service answers it. */
export interface Plant {
  readonly id: bigint
  readonly name: string
  readonly tag?: string
}

/** Rows of the list without a gap between them, in ascending order of id. */
export interface Rows {
  all(): readonly Plant[]
  /** Whether the first row is the first of all. */
  hasTop(): boolean
  /** Whether the last row is the last of all. */
  hasEnd(): boolean
  /** The index of the first row with this id or a greater one. */
  indexOf(id: bigint): number
  at(id: bigint): Plant | undefined
  /** Starts anew. */
  reset(plants: readonly Plant[], edges: { hasTop: boolean; hasEnd: boolean }): void
  append(plants: readonly Plant[], hasEnd: boolean): void
  /** Inserts or replaces a row, unless its place is not among those that are loaded. */
  put(plant: Plant): 'inserted' | 'replaced' | 'same' | 'outside'
  /** Whether there was such a row. */
  remove(id: bigint): boolean
}

export function buildRows(): Rows {
  let rows: Plant[] = []
  let top = true
  let end = false

  function indexOf(id: bigint): number {
    let low = 0
    let high = rows.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((rows[middle] as Plant).id < id) low = middle + 1
      else high = middle
    }
    return low
  }

  function isOutside(index: number): boolean {
    return (index === 0 && !top) || (index === rows.length && !end)
  }

  const found = (id: bigint): Plant | undefined => {
    const row = rows[indexOf(id)]
    return row?.id === id ? row : undefined
  }

  return {
    all: () => rows,
    hasTop: () => top,
    hasEnd: () => end,
    indexOf,
    at: found,
    reset(plants, edges) {
      rows = [...plants]
      top = edges.hasTop
      end = edges.hasEnd
    },
    append(plants, hasEnd) {
      rows = rows.concat(plants)
      end = hasEnd
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
