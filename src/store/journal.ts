import { randomBytes } from 'node:crypto'
import type { StoredPlant } from '../contract/shapes.ts'
import { apply, type Change, type Outcome, type Rows } from './changes.ts'
import { type Place, toPositions } from './positions.ts'
import { type JournalEvent, pageBytes } from './store.ts'

/**
 * A row of the journal: all changes of one commit, as JSON. The nonce tells it from a row that took
 * its number in another life of the store, such as one before a restore.
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

/** A nonce tells rows of one number apart. It is no secret. */
export function newNonce(): number {
  return Math.floor(Math.random() * 2 ** 31)
}

/** A change in a row: its kind, token, id, name and, if it has one, tag. */
type Line = readonly string[]

export function toLine(
  kind: keyof typeof types,
  tokenId: string | undefined,
  { id, name, tag }: StoredPlant,
): Line {
  const token = tokenId ?? ''
  return tag === undefined ? [kind, token, String(id), name] : [kind, token, String(id), name, tag]
}

/** A row for these lines. Their texts are joined at once: one by one would take twice as long. */
export function toRow(lines: readonly Line[]): JournalRow {
  const changes = JSON.stringify(lines)
  return { at: Date.now(), nonce: newNonce(), count: lines.length, changes }
}

/** Applies changes to rows, and notes each effect for the journal. */
export interface Recorder {
  apply<One extends Change>(change: One): Outcome<One>
  /** The row for the effects since the last call; undefined if there were none. */
  take(): JournalRow | undefined
}

export function recordChanges(rows: Rows): Recorder {
  let lines: Line[] = []
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
  row: Pick<JournalRow, 'at' | 'changes'>,
  from: Place,
  reading: Reading,
): boolean {
  const { events, limit } = reading
  const changes = toJson(row.changes)
  const name = toPositions(from)
  for (let start = 1, done = 1; start < changes.length; done++) {
    // ["c","token","id","name","tag"], of which the tag may be absent.
    const tokenEnd = findTextEnd(changes, start + 6)
    const idEnd = findTextEnd(changes, tokenEnd + 3)
    const nameEnd = findTextEnd(changes, idEnd + 3)
    const hasTag = changes[nameEnd + 1] === ','
    const end = hasTag ? findTextEnd(changes, nameEnd + 3) : nameEnd
    if (done > from.done) {
      reading.bytes += end - start
      // There is always room for one.
      const isFull = events.length === limit || reading.bytes > pageBytes
      if (isFull && events.length > 0) return false
      const id = changes.slice(tokenEnd + 3, idEnd)
      const nameJson = changes.slice(idEnd + 2, nameEnd + 1)
      const tagMember = hasTag ? `,"tag":${changes.slice(nameEnd + 2, end + 1)}` : ''
      events.push({
        position: name(done),
        type: types[changes[start + 2] as keyof typeof types],
        at: row.at,
        plantJson: `{"id":${id},"name":${nameJson}${tagMember}}`,
        tokenId: changes.slice(start + 6, tokenEnd) || undefined,
      })
    }
    start = end + 3
  }
  return true
}

/** The JSON of a row. Release 1.1.0 wrote a line for each change, with tabs between its parts. */
function toJson(changes: string): string {
  if (changes === '' || changes.startsWith('[')) return changes
  const lines = changes.split('\n').map((line) => {
    const [kind, token, id, ...texts] = line.split('\t')
    return `["${kind}","${token}","${id}",${texts.join(',')}]`
  })
  return `[${lines.join(',')}]`
}

/** Finds the quote that ends a text of JSON: an even number of backslashes is before it. */
function findTextEnd(json: string, start: number): number {
  for (let end = json.indexOf('"', start); end !== -1; end = json.indexOf('"', end + 1)) {
    let escapes = end
    while (json[escapes - 1] === '\\') escapes--
    if ((end - escapes) % 2 === 0) return end
  }
  throw new Error('A row of the journal is damaged.')
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
