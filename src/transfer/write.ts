import type { Format } from '../contract/formats.ts'
import type { StoredPlant } from '../contract/shapes.ts'
import { toJson } from '../json/write.ts'
import type { Snapshot } from '../store/store.ts'

export interface ExportQuery {
  readonly format: Format
  readonly after: bigint | undefined
  readonly tag: string | undefined
  /** The largest number of plants; undefined for all of them. */
  readonly limit: number | undefined
}

const heads: Record<Format, string> = { ndjson: '', csv: 'id,name,tag\n' }
const toLine: Record<Format, (plant: StoredPlant) => string> = { ndjson: toJson, csv: toRow }

/**
 * Writes the plants of a snapshot as text, piece by piece. `onWritten` gets the plants in each
 * piece.
 */
export async function* writePlants(
  snapshot: Snapshot,
  { format, after, tag, limit = Number.POSITIVE_INFINITY }: ExportQuery,
  onWritten: (count: number) => void = () => {},
): AsyncGenerator<string> {
  const write = toLine[format]
  let piece = heads[format]
  for await (const plants of snapshot.walkPlants({ after, tag, limit })) {
    for (const plant of plants) piece += `${write(plant)}\n`
    yield piece
    onWritten(plants.length)
    piece = ''
  }
  if (piece !== '') yield piece
}

/** Spreadsheets trim blanks at the edges of a field that has no quotes. */
const needsQuotes = /[",\r\n]|^$|^\s|\s$/

function toRow({ id, name, tag }: StoredPlant): string {
  return `${id},${toField(name)},${tag === undefined ? '' : toField(tag)}`
}

/** An empty text gets quotes: a field without any text is an absent one. */
function toField(text: string): string {
  return needsQuotes.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
