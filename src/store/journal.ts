import { randomBytes, randomInt } from 'node:crypto'
import type { StoredPlant } from '../contract/shapes.ts'
import { apply, type Change, type Outcome, type Rows } from './changes.ts'
import { type Place, toPosition } from './positions.ts'
import { type EventType, type JournalEvent, type Position, pageBytes } from './store.ts'

/**
 * A row of the journal: all changes of one commit, a line for each. The nonce tells it from a row
 * that took its number in another life of the store, such as one before a restore.
 */
export interface JournalRow {
  readonly at: number
  readonly nonce: number
  readonly count: number
  readonly changes: string
}

const types = { c: 'plant.created', r: 'plant.replaced', d: 'plant.deleted' } as const

/** A new name of a journal. Positions of another life are unknown to it. */
export function newLife(): string {
  return randomBytes(6).toString('hex')
}

export function newNonce(): number {
  return randomInt(2 ** 31)
}

/** The line of a change. JSON has no raw tab and no raw line end. */
export function toLine(
  kind: keyof typeof types,
  tokenId: string | undefined,
  { id, name, tag }: StoredPlant,
): string {
  const line = `${kind}\t${tokenId ?? ''}\t${id}\t${JSON.stringify(name)}`
  return tag === undefined ? line : `${line}\t${JSON.stringify(tag)}`
}

/** A row for these lines. */
export function toRow(lines: readonly string[]): JournalRow {
  const changes = lines.join('\n')
  return { at: Date.now(), nonce: newNonce(), count: lines.length, changes }
}

/** Applies changes to rows, and notes each effect for the journal. */
export interface Recorder {
  apply<One extends Change>(change: One): Outcome<One>
  /** The row for the effects since the last call; undefined if there were none. */
  take(): JournalRow | undefined
}

export function recordChanges(rows: Rows): Recorder {
  let lines: string[] = []
  let tokenId: string | undefined
  const recorded: Rows = {
    ...rows,
    insert(plant) {
      const isInserted = rows.insert(plant)
      if (isInserted) lines.push(toLine('c', tokenId, plant))
      return isInserted
    },
    update(plant) {
      rows.update(plant)
      lines.push(toLine('r', tokenId, plant))
    },
    delete(plant) {
      rows.delete(plant)
      lines.push(toLine('d', tokenId, plant))
    },
  }
  return {
    apply(change) {
      tokenId = change.tokenId
      return apply(recorded, change)
    },
    take() {
      if (lines.length === 0) return undefined
      const row = toRow(lines)
      lines = []
      return row
    },
  }
}

/** A page that is being read, and how much room it has left. */
export interface Reading {
  readonly events: JournalEvent[]
  readonly limit: number
  bytes: number
}

/** Adds the changes of a row after a place. Returns whether there was room for all of them. */
export function readRow(
  { at, changes }: Pick<JournalRow, 'at' | 'changes'>,
  from: Place,
  reading: Reading,
): boolean {
  let start = 0
  for (let skipped = 0; skipped < from.done; skipped++) start = changes.indexOf('\n', start) + 1
  for (let done = from.done + 1; ; done++) {
    const lineEnd = changes.indexOf('\n', start)
    const end = lineEnd === -1 ? changes.length : lineEnd
    reading.bytes += end - start
    if (isFull(reading)) return false
    const position = toPosition({ ...from, done })
    reading.events.push(toEvent(changes.slice(start, end), at, position))
    if (lineEnd === -1) return true
    start = end + 1
  }
}

/** Whether a page has no room for the change that was counted last. It has room for one. */
function isFull({ events, limit, bytes }: Reading): boolean {
  return events.length === limit || (events.length > 0 && bytes > pageBytes)
}

function toEvent(line: string, at: number, position: Position): JournalEvent {
  const idAt = line.indexOf('\t', 2) + 1
  const nameAt = line.indexOf('\t', idAt) + 1
  const tagAt = line.indexOf('\t', nameAt) + 1
  const id = BigInt(line.slice(idAt, nameAt - 1))
  const name: string = JSON.parse(tagAt === 0 ? line.slice(nameAt) : line.slice(nameAt, tagAt - 1))
  const tokenId = idAt === 3 ? undefined : line.slice(2, idAt - 1)
  const type: EventType = types[line[0] as keyof typeof types]
  const plant = tagAt === 0 ? { id, name } : { id, name, tag: JSON.parse(line.slice(tagAt)) }
  return { position, type, at, plant, tokenId }
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
