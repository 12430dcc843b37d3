/** A wanted change that was read from the journal. It is open until it needs no more care. */
export interface Entry {
  readonly position: string
  isOpen: boolean
}

/** The position up to which nothing is open, and what is finished beyond it. */
export interface WindowProgress {
  readonly position: string
  readonly ahead: readonly string[]
  readonly firstOpen: string | undefined
}

/** Tracks how far a receiver is while changes are finished out of order. */
export interface Window {
  /** Adds the next change of the journal. */
  add(position: string, state: 'open' | 'closed'): Entry
  /** Moves past a change that the receiver does not want. */
  skip(position: string): void
  progress(): WindowProgress
  /** How many wanted changes it holds, open ones and those beyond. */
  size(): number
}

/** Builds a window that begins after a position. */
export function buildWindow(begin: string): Window {
  let position = begin
  /** Wanted changes, and the last of each run of unwanted ones. */
  let entries: (Entry | string)[] = []
  let wanted = 0

  function slide(): void {
    let closed = 0
    for (const entry of entries) {
      if (typeof entry === 'string') position = entry
      else if (entry.isOpen) break
      else {
        position = entry.position
        wanted--
      }
      closed++
    }
    if (closed > 0) entries = entries.slice(closed)
  }

  return {
    add(position, state) {
      const entry = { position, isOpen: state === 'open' }
      entries.push(entry)
      wanted++
      return entry
    },

    skip(skipped) {
      if (entries.length === 0) position = skipped
      else if (typeof entries.at(-1) === 'string') entries[entries.length - 1] = skipped
      else entries.push(skipped)
    },

    progress() {
      slide()
      const held = entries.filter((entry) => typeof entry !== 'string')
      const ahead = held.filter(({ isOpen }) => !isOpen).map((entry) => entry.position)
      return { position, ahead, firstOpen: held[0]?.position }
    },

    size: () => wanted,
  }
}
