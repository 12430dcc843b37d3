import type { Format } from '../contract/formats.ts'
import type { StoredPlant } from '../contract/shapes.ts'
import { toJson } from '../json/plant-json.ts'
import type { Snapshot, Store } from '../store/store.ts'

/** How a file is written. */
export interface ExportForm {
  readonly format: Format
  /** What separates the fields of CSV: a comma, unless one is given. */
  readonly delimiter?: string | undefined
  /** Whether CSV is for a spreadsheet, which must not run stored text as a formula. */
  readonly spreadsheet?: boolean | undefined
}

export interface ExportQuery extends ExportForm {
  readonly after: bigint | undefined
  readonly tag: string | undefined
  /** The largest number of plants; undefined for all of them. */
  readonly limit: number | undefined
}

/** Opens a snapshot of the store, uses it and closes it. */
export async function withSnapshot<Value>(
  store: Store,
  use: (snapshot: Snapshot) => Promise<Value>,
): Promise<Value> {
  const snapshot = await store.openSnapshot()
  try {
    return await use(snapshot)
  } finally {
    await snapshot.close()
  }
}

/**
 * Writes the plants of a snapshot as text, piece by piece. `onWritten` gets the plants in each
 * piece.
 */
export async function* writePlants(
  snapshot: Snapshot,
  { after, tag, limit = Number.POSITIVE_INFINITY, ...form }: ExportQuery,
  onWritten: (count: number) => void = () => {},
): AsyncGenerator<string> {
  const { head, toLine } = form.format === 'csv' ? toCsv(form) : { head: '', toLine: toJson }
  let piece = head
  for await (const plants of snapshot.walkPlants({ after, tag, limit })) {
    for (const plant of plants) piece += `${toLine(plant)}\n`
    yield piece
    onWritten(plants.length)
    piece = ''
  }
  if (piece !== '') yield piece
}

/** The beginning of a file of CSV, and how it writes a plant. */
function toCsv({ delimiter = ',', spreadsheet = false }: ExportForm) {
  // Spreadsheets trim blanks at the edges of a field that has no quotes.
  const needsQuotes = new RegExp(`["\\r\\n${delimiter}]|^$|^\\s|\\s$`)

  /** Empty text is quoted: an empty field without quotes stands for an absent member. */
  function toField(text: string): string {
    return needsQuotes.test(text) ? `"${text.replaceAll('"', '""')}"` : text
  }

  const toCell = spreadsheet ? (text: string) => toField(markFormulas(text)) : toField
  return {
    head: `${spreadsheet ? '\ufeff' : ''}${['id', 'name', 'tag'].join(delimiter)}\n`,
    toLine({ id, name, tag }: StoredPlant): string {
      return `${id}${delimiter}${toCell(name)}${delimiter}${tag === undefined ? '' : toCell(tag)}`
    },
  }
}

/**
 * Where a spreadsheet would see a formula: at the start of a text, and after any character that may
 * separate fields, because a spreadsheet may assume another delimiter.
 */
const formulas = /(^|[,;\t\r\n])(?=(?:[^\S\t\r\n]|")*[=+\-@＝＋－＠])|^(?=[\t\r])/g

/** Puts an apostrophe before each formula, which makes it text. */
function markFormulas(text: string): string {
  return text.replace(formulas, "$1'")
}
