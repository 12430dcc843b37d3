import { type Fields, parseRecord } from '../contract/csv-record.ts'
import { delimiters } from '../contract/formats.ts'
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
  const { delimiter, fields } = found ?? (tried[0] as (typeof tried)[number])
  if (found === undefined) {
    const used = findOtherDelimiter(
      text,
      tried.map((one) => one.delimiter),
    )
    if (used !== undefined) throw otherDelimiter(line, used, delimiter)
  }
  if (typeof fields === 'string') return fields
  return { text, delimiter, columns: toColumns(fields, text, line, delimiter) }
}

function toColumns(fields: Fields, text: string, line: number, delimiter: string): Columns {
  const indexes = new Map<string, number>()
  for (const [index, name = ''] of fields.entries()) {
    // Spreadsheets write columns without a name, too.
    if (name !== '' && indexes.has(name)) {
      throw unreadable(line, `The header names the column ${show(name)} twice.`)
    }
    indexes.set(name, index)
  }
  const missing = ['id', 'name'].find((name) => !indexes.has(name))
  if (missing !== undefined)
    throw missingColumn([...indexes.keys()], text, line, delimiter, missing)
  const [id = 0, name = 0, tag = -1] = known.map((column) => indexes.get(column))
  return { count: fields.length, id, name, tag }
}

function otherDelimiter(line: number, found: string, delimiter: string): UnreadableFile {
  const [foundName, name] = [found, delimiter].map((one) => delimiterWords.get(one) ?? show(one))
  return unreadable(line, `The fields are separated by ${foundName}, not by ${name}.`, found)
}

/** Says what was found instead of the column, and what to do. */
function missingColumn(
  names: readonly string[],
  text: string,
  line: number,
  delimiter: string,
  missing: string,
): UnreadableFile {
  const similar = names.find((name) => name.trim().toLowerCase() === missing)
  if (similar !== undefined) {
    const reason = `The header names the column ${show(similar)}: write it as ${show(missing)}.`
    return unreadable(line, reason)
  }
  const example = known.join(delimiter)
  if (names.some((name) => /^-?\d+$/.test(name))) {
    const reason = `The first line ${show(text.trimEnd())} is no header: put a line such as ${show(example)} before it, with the columns in their order.`
    return unreadable(line, reason)
  }
  return unreadable(
    line,
    `The header ${show(text.trimEnd())} has no column ${show(missing)}: id and name are required, tag is optional.`,
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
  const names = fields.map((name = '') => name.trim().toLowerCase())
  return names.includes('id') && names.includes('name')
}

function unreadable(line: number, reason: string, delimiter?: string): UnreadableFile {
  return new UnreadableFile(40003, line, reason, { delimiter })
}

function show(text: string): string {
  return JSON.stringify(text.length <= maxShown ? text : `${text.slice(0, maxShown)}…`)
}
