import { randomBytes } from 'node:crypto'
import type { StoredPlant } from '../contract/shapes.ts'
import { apply, type Change, type Outcome, type Rows } from './changes.ts'
import { type Columns, newColumns, note, toText } from './journal-text.ts'
import type { Place } from './positions.ts'

/**
 * A row of the journal: all changes of one commit, as a text. The nonce tells it from a row that
 * took its number in another life of the store, such as one before a restore.
 */
export interface JournalRow {
  readonly at: number
  readonly nonce: number
  readonly count: number
  readonly changes: string
}

/** A new name of a journal. Positions of another life are unknown to it. */
export function newLife(): string {
  return randomBytes(6).toString('hex')
}

/** A nonce tells rows of one number apart. It is no secret. */
export function newNonce(): number {
  return Math.floor(Math.random() * 2 ** 31)
}

/** The row of one create. */
export function toCreatedRow(plant: StoredPlant, tokenId: string | undefined): JournalRow {
  const columns = newColumns()
  note(columns, 'c', tokenId, plant)
  return toRow(columns)
}

function toRow(columns: Columns): JournalRow {
  const count = columns.ids.length
  return { at: Date.now(), nonce: newNonce(), count, changes: toText(columns) }
}

/** Applies changes to rows, and notes each effect for the journal. */
export interface Recorder {
  apply<One extends Change>(change: One): Outcome<One>
  /** The row for the effects since the last call; undefined if there were none. */
  take(): JournalRow | undefined
}

export function recordChanges(rows: Rows): Recorder {
  let columns = newColumns()
  let tokenId: string | undefined
  const recorded: Rows = {
    ...rows,
    insert(plant) {
      const isInserted = rows.insert(plant)
      if (isInserted) note(columns, 'c', tokenId, plant)
      return isInserted
    },
    update(plant) {
      rows.update(plant)
      note(columns, 'r', tokenId, plant)
    },
    delete(plant) {
      rows.delete(plant)
      note(columns, 'd', tokenId, plant)
    },
  }
  return {
    apply(change) {
      tokenId = change.tokenId
      return apply(recorded, change)
    },
    take() {
      if (columns.ids.length === 0) return undefined
      const row = toRow(columns)
      columns = newColumns()
      return row
    },
  }
}

/** Whether a place is in the row that ends here, and not in one that had its number before. */
export function isReached(place: Place, end: Place): boolean {
  return place.seq === end.seq && place.nonce === end.nonce && place.done <= end.done
}

/** How much one step of a trim looks at, and deletes: no request should wait for it. */
export const rowsPerTrim = 501
const bytesPerTrim = 1024 * 1024

/**
 * Chooses the rows that a step of a trim deletes, among the oldest: those from before a time, up to
 * the first that is not, so that no gap comes up. The last row stays: the end of the journal needs
 * a row to be recognised by.
 */
export function planTrim(
  oldest: readonly (readonly [seq: number, at: number, bytes: number])[],
  before: number,
): { upTo: number | undefined; isDone: boolean } {
  let upTo: number | undefined
  let bytes = 0
  for (const [index, [seq, at, size]] of oldest.entries()) {
    if (at >= before) return { upTo, isDone: true }
    if (index === oldest.length - 1) break
    bytes += size
    if (upTo !== undefined && bytes > bytesPerTrim) return { upTo, isDone: false }
    upTo = seq
  }
  return { upTo, isDone: oldest.length < rowsPerTrim }
}
