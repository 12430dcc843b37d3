import { delimiters } from '../contract/formats.ts'
import { maxIgnored } from '../contract/shapes.ts'
import { isStorable, toPathId } from '../contract/values.ts'
import {
  type Entry,
  type Header,
  type Line,
  maxLineBytes,
  type Reader,
  type Refusal,
  UnreadableFile,
} from './lines.ts'

/** The header row of a file, and where the columns of a plant are; -1 for a tag without one. */
interface HeaderRow extends Header {
  readonly columns: Readonly<Record<'count' | 'id' | 'name' | 'tag', number>>
}

/** The lines of a record whose quoted field has not ended yet. */
interface OpenRecord {
  readonly number: number
  readonly lines: string[]
  bytes: number
}

/**
 * Reads rows under a header row, which shows the delimiter unless one is given. A quoted field may
 * run over several lines.
 */
export function buildCsvReader(given?: string): Reader {
  let header: HeaderRow | undefined
  let open: OpenRecord | undefined

  function readLine({ number, text, fault: found }: Line): Entry | undefined {
    const fault = found?.error === 40001 ? notUtf8 : found
    if (open !== undefined) return continueRecord(open, text, fault)
    if (header === undefined && text.startsWith(zipMark)) {
      throw new UnreadableFile(40003, number, workbook)
    }
    if (header === undefined && hasBareReturns(text)) {
      throw new UnreadableFile(40003, number, bareReturns)
    }
    if (text === '') return undefined
    return fault === undefined ? readRecord(number, text) : reject(fault, number, text)
  }

  /** Rejects a record. Without a header before it, the whole file is unreadable. */
  function reject({ error, message }: Refusal, line: number, text: string): Entry {
    if (header === undefined) throw new UnreadableFile(40003, line, message)
    return { line, text, refusal: { error, message: message + explainLines(line, text) } }
  }

  /** Rejects the lines read so far as one record. The next line begins a new one. */
  function rejectOpen({ number, lines }: OpenRecord, refusal: Refusal): Entry {
    open = undefined
    return reject(refusal, number, lines.join('\n'))
  }

  function continueRecord(
    record: OpenRecord,
    text: string,
    fault: Refusal | undefined,
  ): Entry | undefined {
    record.lines.push(text)
    record.bytes += Buffer.byteLength(text) + 1
    if (fault !== undefined) return rejectOpen(record, fault)
    if (record.bytes > maxLineBytes) return rejectOpen(record, neverEnds)
    // A line with an even number of quotes ends as it began: inside the quoted field.
    if (countQuotes(text) % 2 === 0) return undefined
    open = undefined
    return readRecord(record.number, record.lines.join('\n'))
  }

  function readRecord(number: number, text: string): Entry | undefined {
    const record = text.endsWith('\r') ? text.slice(0, -1) : text
    if (header === undefined) return readHead(number, text, record)
    const fields = parseRecord(record, header.delimiter)
    if (fields === 'open') return hold(number, text)
    if (fields === 'malformed') return reject(unexpectedQuote, number, text)
    return record === '' ? undefined : toEntry(fields, header.columns, number, text)
  }

  function readHead(number: number, text: string, record: string): Entry | undefined {
    if (record.trim() === '' || separatorLine.test(record)) return undefined
    const read = readHeader(record, number, given)
    if (read === 'open') return hold(number, text)
    if (read === 'malformed') return reject(unexpectedQuote, number, text)
    header = read
    return undefined
  }

  function hold(number: number, text: string): undefined {
    open = { number, lines: [text], bytes: Buffer.byteLength(text) }
  }

  function toEntry(
    fields: Fields,
    columns: HeaderRow['columns'],
    line: number,
    text: string,
  ): Entry {
    if (fields.length !== columns.count) {
      const message = `The row has ${fields.length} fields, but the header has ${columns.count}.`
      return reject({ error: 40003, message }, line, text)
    }
    const id = toPathId(fields[columns.id] ?? '')
    const name = fields[columns.name]
    const tag = fields[columns.tag]
    const refuse = (message: string) => ({ ...reject({ error: 40003, message }, line, text), id })
    if (id === undefined) return refuse(explainId(fields[columns.id]))
    if (name === undefined) return refuse('Column "name" is absent: write "" for an empty name.')
    if (!isStorable(name) || (tag !== undefined && !isStorable(tag))) {
      return refuse('Columns "name" and "tag" must not have NUL characters.')
    }
    return { line, text, plant: tag === undefined ? { id, name } : { id, name, tag } }
  }

  return {
    read: readLine,
    end() {
      if (open !== undefined) return rejectOpen(open, neverEnds)
      if (header === undefined) throw new UnreadableFile(40003, 1, noHeader)
      return undefined
    },
    header: () => header,
  }
}

/** Whether carriage returns alone end lines, so that the whole file looks like its header row. */
function hasBareReturns(text: string): boolean {
  return /\r(?!$)/.test(text.replaceAll(/"[^"]*("|$)/g, ''))
}

/** A quote too many, or too few, makes one record of several lines. */
function explainLines(line: number, text: string): string {
  const more = text.split('\n').length - 1
  if (more === 0) return ''
  return ` A quote in line ${line} makes one record of it and ${more} more, through line ${line + more}.`
}

/** Why a field is no id, for people. */
function explainId(field = ''): string {
  return /^-?[1-9]\d*$/.test(field)
    ? 'The number in column "id" is too large.'
    : 'Column "id" must be a whole number in digits, such as 42.'
}

const neverEnds: Refusal = {
  error: 40001,
  message: 'A quoted field starts here and does not end.',
}
const notUtf8: Refusal = {
  error: 40001,
  message:
    'The line is not UTF-8. Save the file as "CSV UTF-8 (comma delimited)" in Excel, or with the character set "Unicode (UTF-8)" in LibreOffice.',
}
const unexpectedQuote: Refusal = {
  error: 40001,
  message: 'Unexpected quote: put the whole field in quotes and double the quotes inside.',
}
/** How a zip archive begins: a workbook is one. */
const zipMark = 'PK\u0003\u0004'
const workbook =
  'This is a workbook, not CSV. Open it and save it as "CSV UTF-8 (comma delimited)" in Excel, or as "Text CSV" with the character set "Unicode (UTF-8)" in LibreOffice.'
const bareReturns =
  'The lines end with CR alone. Save the file with LF or CR LF at the end of lines.'
const noNames =
  'The first line must name the columns "id" and "name", and "tag" where there are tags.'
const noHeader = 'The header row is missing: the first line must name the columns id,name,tag.'

const known = ['id', 'name', 'tag']
/** Longer texts are shortened in messages. */
const maxShown = 100

/** Excel's own first line, such as `sep=;`. What it says, the header row shows as well. */
const separatorLine = /^"?sep=[^"]"?$/i

/**
 * Reads the header row by the given delimiter, or else by the one with which it is a header. A
 * mistake in it is reported once, for the whole file.
 */
function readHeader(
  text: string,
  line: number,
  given: string | undefined,
): HeaderRow | 'open' | 'malformed' {
  const tried = given === undefined ? Object.values(delimiters) : [given]
  const rows = tried.map((delimiter) => ({ delimiter, fields: parseRecord(text, delimiter) }))
  if (rows.some(({ fields }) => fields === 'open')) return 'open'
  if (rows.every(({ fields }) => fields === 'malformed')) return 'malformed'
  for (const { delimiter, fields } of rows) {
    if (typeof fields !== 'string' && isHeader(fields)) {
      return toHeaderRow(text, line, delimiter, fields)
    }
  }
  throw new UnreadableFile(40003, line, `${noNames} It is: ${show(text)}.`)
}

/** Whether fields name an id and a name, in any spelling. */
function isHeader(fields: Fields): boolean {
  const names = fields.map(toName)
  return names.includes('id') && names.includes('name')
}

function toHeaderRow(text: string, line: number, delimiter: string, fields: Fields): HeaderRow {
  const names = fields.map(toName)
  const twice = known.find((name) => names.indexOf(name) !== names.lastIndexOf(name))
  if (twice !== undefined) {
    throw new UnreadableFile(40003, line, `The header names the column "${twice}" twice.`)
  }
  const [id = 0, name = 0, tag = -1] = known.map((column) => names.indexOf(column))
  // Spreadsheets also write columns without a name.
  const isIgnored = (field: string) => !['', ...known].includes(toName(field))
  const ignored = fields.flatMap((field = '') => (isIgnored(field) ? field : []))
  const columns = { count: fields.length, id, name, tag }
  return { text, delimiter, columns, ignored: ignored.slice(0, maxIgnored) }
}

/** The name of a column, which may be written in any case and with spaces around it. */
function toName(field = ''): string {
  return field.trim().toLowerCase()
}

function show(text: string): string {
  return JSON.stringify(text.length <= maxShown ? text : `${text.slice(0, maxShown)}…`)
}

/**
 * The fields of a record. A field without text is absent; an empty text is written as two quotes.
 */
type Fields = (string | undefined)[]

/**
 * Splits a record into its fields. It is open if a quoted field does not end in it, and malformed
 * if a quote is neither around a field nor doubled in one.
 */
function parseRecord(record: string, delimiter: string): Fields | 'open' | 'malformed' {
  const fields: Fields = []
  for (let start = 0; ; ) {
    const isQuoted = record[start] === '"'
    const end = isQuoted
      ? findClosingQuote(record, start + 1) + 1
      : findDelimiter(record, delimiter, start)
    if (isQuoted && end === 0) return 'open'
    const text = record.slice(start, end)
    if (isQuoted) fields.push(text.slice(1, -1).replaceAll('""', '"'))
    else if (text.includes('"')) return 'malformed'
    else fields.push(text || undefined)
    if (end === record.length) return fields
    if (record[end] !== delimiter) return 'malformed'
    start = end + 1
  }
}

function findDelimiter(record: string, delimiter: string, from: number): number {
  const at = record.indexOf(delimiter, from)
  return at === -1 ? record.length : at
}

function findClosingQuote(record: string, from: number): number {
  let at = record.indexOf('"', from)
  while (at !== -1 && record[at + 1] === '"') at = record.indexOf('"', at + 2)
  return at
}

function countQuotes(text: string): number {
  let count = 0
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) count++
  return count
}
