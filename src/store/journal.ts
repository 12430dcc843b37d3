import { randomBytes } from 'node:crypto'
import type { StoredPlant } from '../contract/shapes.ts'
import { apply, type Change, type Outcome, type Rows } from './changes.ts'
import { type Columns, type Kind, newColumns, note, toText } from './journal-text.ts'
import type { Place } from './positions.ts'
import { pageBytes } from './store.ts'

/**
 * A row of the journal: the changes of one commit, as a text. A commit of large plants has several.
 * The nonce tells it from a row that took its number in another life of the store, such as one
 * before a restore.
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
  /** How much text the effects noted so far have. */
  noted(): number
  /** The rows for the effects since the last call. */
  take(): JournalRow[]
  /** Forgets the effects since the last call. */
  discard(): void
}

export function recordChanges(rows: Rows): Recorder {
  let columns = newColumns()
  let full: JournalRow[] = []
  let noted = 0
  let tokenId: string | undefined

  function record(kind: Kind, plant: StoredPlant): void {
    note(columns, kind, tokenId, plant)
    noted += plant.name.length + (plant.tag?.length ?? 0)
    // A page of events is read from about one row, however much a commit changes.
    if (noted > pageBytes * (full.length + 1)) close()
  }

  function close(): void {
    if (columns.ids.length > 0) full.push(toRow(columns))
    columns = newColumns()
  }

  function discard(): void {
    columns = newColumns()
    full = []
    noted = 0
  }

  const recorded: Rows = {
    ...rows,
    insert(plant) {
      const isInserted = rows.insert(plant)
      if (isInserted) record('c', plant)
      return isInserted
    },
    update(plant) {
      rows.update(plant)
      record('r', plant)
    },
    delete(plant) {
      rows.delete(plant)
      record('d', plant)
    },
  }
  return {
    apply(change) {
      tokenId = change.tokenId
      return apply(recorded, change)
    },
    noted: () => noted,
    take() {
      close()
      const taken = full
      discard()
      return taken
    },
    discard,
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
