import { type Fields, parseRecord } from '../contract/csv-record.ts'
import { delimiters } from '../contract/formats.ts'
import { maxIgnored } from '../contract/shapes.ts'
import { type Header, UnreadableFile } from './entry.ts'

/** Where the columns of a plant are; -1 for a tag that the file does not have. */
export interface Columns {
  readonly count: number
  readonly id: number
  readonly name: number
  readonly tag: number
}

/** The header row of a file. */
export interface HeaderRow extends Header {
  readonly columns: Columns
}

/** The delimiters that files have in practice, as messages name them. Not all of them are read. */
const delimiterWords = new Map([
  [',', 'commas'],
  [';', 'semicolons'],
  ['\t', 'tabs'],
  ['|', 'vertical bars'],
])
const known = ['id', 'name', 'tag']
/** Longer texts are shortened in messages. */
const maxShown = 100

/** Excel's own first line, such as `sep=;`. What it says, the header row shows as well. */
const separatorLine = /^"?sep=[^"]"?$/i

/** Whether a line may come before the header row. */
export function isBeforeHeader(text: string): boolean {
  return text.trim() === '' || separatorLine.test(text)
}

/**
 * Reads the header row by the given delimiter, or else by the one with which it is a header. A
 * mistake in it is reported once, for the whole file.
 */
export function readHeader(
  text: string,
  line: number,
  given: string | undefined,
): HeaderRow | 'open' | 'malformed' {
  const tried = (given === undefined ? Object.values(delimiters) : [given]).map((delimiter) => ({
    delimiter,
    fields: parseRecord(text, delimiter),
  }))
  if (tried.some(({ fields }) => fields === 'open')) return 'open'
  const found = tried.find(({ fields }) => isHeader(fields))
  const { delimiter, fields } = found ?? (tried.toSorted(byFields)[0] as Tried)
  if (found === undefined) {
    const used = findOtherDelimiter(
      text,
      tried.map((one) => one.delimiter),
    )
    if (used !== undefined) throw otherDelimiter(line, used, tried[0]?.delimiter ?? delimiter)
  }
  if (typeof fields === 'string') return fields
  const columns = toColumns(fields, text, line, delimiter)
  return { text, delimiter, columns, ignored: findIgnored(fields) }
}

/** A header row, split by one of the delimiters. */
interface Tried {
  readonly delimiter: string
  readonly fields: ReturnType<typeof parseRecord>
}

/** The delimiter that makes the most fields of a line comes first. */
function byFields(one: Tried, other: Tried): number {
  const count = ({ fields }: Tried) => (typeof fields === 'string' ? 0 : fields.length)
  return count(other) - count(one)
}

/** The name of a column, which may be written in any case and with spaces around it. */
function toName(field = ''): string {
  return field.trim().toLowerCase()
}

function toColumns(fields: Fields, text: string, line: number, delimiter: string): Columns {
  const names = fields.map(toName)
  const twice = known.find((name) => names.indexOf(name) !== names.lastIndexOf(name))
  if (twice !== undefined) {
    throw unreadable(line, `The header names the column ${show(twice)} twice.`)
  }
  const missing = ['id', 'name'].filter((name) => !names.includes(name))
  if (missing.length > 0) throw missingColumns(fields, text, line, delimiter, missing)
  const [id = 0, name = 0, tag = -1] = known.map((column) => names.indexOf(column))
  return { count: fields.length, id, name, tag }
}

/** The columns that are not stored. Spreadsheets also write columns without a name. */
function findIgnored(fields: Fields): string[] {
  const isIgnored = (field: string) => !['', ...known].includes(toName(field))
  return fields.flatMap((field = '') => (isIgnored(field) ? field : [])).slice(0, maxIgnored)
}

function otherDelimiter(line: number, found: string, delimiter: string): UnreadableFile {
  const [foundName, name] = [found, delimiter].map((one) => delimiterWords.get(one) ?? show(one))
  return unreadable(line, `The fields are separated by ${foundName}, not by ${name}.`, found)
}

/** Says what was found instead of the columns, and what to do. */
function missingColumns(
  fields: Fields,
  text: string,
  line: number,
  delimiter: string,
  missing: readonly string[],
): UnreadableFile {
  if (fields.some((field = '') => /^-?\d+$/.test(field))) {
    const example = known.join(delimiter)
    const reason = `The first line ${show(text.trimEnd())} is no header: put a line such as ${show(example)} before it, with the columns in their order.`
    return unreadable(line, reason)
  }
  const shown = fields.slice(0, maxIgnored).map((field = '') => show(field))
  const found = shown.length < fields.length ? [...shown, '…'] : shown
  const noun = missing.length === 1 ? 'column' : 'columns'
  return unreadable(
    line,
    `The header has no ${noun} ${missing.map(show).join(' and ')}. It has: ${found.join(', ')}. Rename the columns: id and name are required, tag is optional.`,
  )
}

/** The delimiter with which a line is a header, if it is none of those. */
function findOtherDelimiter(text: string, tried: readonly string[]): string | undefined {
  return [...delimiterWords.keys()].find(
    (one) => !tried.includes(one) && isHeader(parseRecord(text.trimEnd(), one)),
  )
}

/** Whether fields name an id and a name, in any spelling. */
function isHeader(fields: ReturnType<typeof parseRecord>): boolean {
  if (typeof fields === 'string') return false
  const names = fields.map(toName)
  return names.includes('id') && names.includes('name')
}

function unreadable(line: number, reason: string, delimiter?: string): UnreadableFile {
  return new UnreadableFile(40003, line, reason, { delimiter })
}

function show(text: string): string {
  return JSON.stringify(text.length <= maxShown ? text : `${text.slice(0, maxShown)}…`)
}
