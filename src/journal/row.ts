import { randomBytes } from 'node:crypto'
import { limits } from '../contract/limits.ts'
import type { StoredPlant } from '../contract/shapes.ts'
import { type Cursor, type Position, toPosition, toPositions } from './position.ts'

/**
 * A row of the journal: the changes of one commit, one line for each. Releases before 2.0.0 wrote
 * several rows for a commit of more than 1 MiB. The nonce distinguishes two rows with the same
 * `seq`, such as one from before a restore and one from after it.
 *
 * A line is the kind of the change, the id of the token, the id of the plant, its name and its tag,
 * separated by tabs; name and tag are JSON, which has no raw tab and no raw line end. A plant
 * without a tag has no fifth part. Release 1.1.0 wrote the same lines.
 */
export interface JournalRow {
  readonly at: number
  readonly nonce: number
  readonly count: number
  readonly changes: string
}

const types = { c: 'plant.created', r: 'plant.replaced', d: 'plant.deleted' } as const

export type Kind = keyof typeof types

/** A change that succeeded. */
export interface JournalEvent {
  readonly position: Position
  readonly type: (typeof types)[Kind]
  readonly at: number
  /** The plant as it is after the change, or as it was before its delete. */
  readonly plantJson: string
  /** The token that made the change; undefined for a command on this machine. */
  readonly tokenId: string | undefined
}

/** A page of the journal, from the position before its first event to the one after its last. */
export interface JournalPage {
  readonly begin: Position
  readonly events: readonly JournalEvent[]
  readonly end: Position
  /** Whether nothing followed when it was read. */
  readonly isLast: boolean
}

/** Whether changes are written to the journal. Commands leave this `as before`. */
export type Journaling = 'on' | 'off' | 'as before'

/** A new journal id. Positions from before a restore carry the old one. */
export function newJournalId(): string {
  return randomBytes(6).toString('hex')
}

/** A nonce for a row. It is not a secret. */
export function newNonce(): number {
  return Math.floor(Math.random() * 2 ** 31)
}

export function toLine(
  kind: Kind,
  tokenId: string | undefined,
  { id, name, tag }: StoredPlant,
): string {
  const line = `${kind}\t${tokenId ?? ''}\t${id}\t${JSON.stringify(name)}`
  return tag === undefined ? line : `${line}\t${JSON.stringify(tag)}`
}

export function toRow(lines: readonly string[]): JournalRow {
  return { at: Date.now(), nonce: newNonce(), count: lines.length, changes: lines.join('\n') }
}

/** The id of the plant of a change, exact to the last digit. */
export function toPlantId({ plantJson }: JournalEvent): bigint {
  return BigInt(plantJson.slice('{"id":'.length, plantJson.indexOf(',')))
}

export function toPlant(event: JournalEvent): StoredPlant {
  return { ...JSON.parse(event.plantJson), id: toPlantId(event) }
}

/** A row to make a page of. Its changes may be missing if they do not fit into the page. */
export interface PageRow extends Pick<JournalRow, 'at' | 'count'> {
  /** Its beginning. */
  readonly cursor: Cursor
  readonly changes: string | null
}

/** The cursor at which a page begins; undefined if it is not in the first row. */
export function toBeginning(
  first: Pick<PageRow, 'cursor' | 'count'> | undefined,
  wanted: Cursor | 'oldest',
): Cursor | undefined {
  if (first === undefined || wanted === 'oldest') return first?.cursor
  const { journalId, seq, nonce } = first.cursor
  // An earlier row may have had the same `seq`.
  const isRow = wanted.journalId === journalId && wanted.seq === seq && wanted.nonce === nonce
  return isRow && wanted.index <= first.count ? wanted : undefined
}

/** Makes a page of the changes of rows after a cursor, and takes no more rows than it needs. */
export function toPage(begin: Cursor, rows: Iterable<PageRow>, limit: number): JournalPage {
  const events: JournalEvent[] = []
  const start = toPosition(begin)
  const close = (isLast: boolean): JournalPage => {
    return { begin: start, events, end: events.at(-1)?.position ?? start, isLast }
  }
  let bytes = 0
  for (const { cursor, count, at, changes } of rows) {
    const from = cursor.seq === begin.seq ? begin : cursor
    if (from.index === count) continue
    if (changes === null) return close(false)
    const toName = toPositions(from)
    let { index } = from
    for (const line of changes.split('\n', index + limit + 1).slice(index)) {
      bytes += Buffer.byteLength(line)
      // The first event always fits.
      const isFull = bytes > limits.pageBytes && events.length > 0
      if (isFull || events.length === limit) return close(false)
      events.push(toEvent(line, at, toName(++index)))
    }
    // The rows may have been read up to the limit.
    if (events.length === limit) return close(false)
  }
  return close(true)
}

function toEvent(line: string, at: number, position: Position): JournalEvent {
  const [kind, tokenId, id, name, tag] = line.split('\t')
  const type = types[kind as Kind]
  if (type === undefined || name === undefined) throw new Error('A row of the journal is damaged.')
  const tagMember = tag === undefined ? '' : `,"tag":${tag}`
  const plantJson = `{"id":${id},"name":${name}${tagMember}}`
  return { position, type, at, plantJson, tokenId: tokenId || undefined }
}
