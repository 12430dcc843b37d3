import { countQuotes, type Fields, parseRecord } from '../contract/csv-record.ts'
import { isStorable, toPathId } from '../contract/values.ts'
import { type Columns, type HeaderRow, isBeforeHeader, readHeader } from './csv-header.ts'
import { type Entry, type Line, type Reader, type Refusal, UnreadableFile } from './entry.ts'
import { maxLineBytes } from './lines.ts'

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

  /** Rejects every line read so far: where the next record begins is unknown. */
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
    const fields = parseRecord(record, header.delimiter, header.columns.count + 1)
    if (fields === 'open') return hold(number, text)
    if (fields === 'malformed') return reject(unexpectedQuote, number, text)
    return record === '' ? undefined : toEntry(fields, header.columns, number, text)
  }

  function readHead(number: number, text: string, record: string): Entry | undefined {
    if (isBeforeHeader(record)) return undefined
    const read = readHeader(record, number, given)
    if (read === 'open') return hold(number, text)
    if (read === 'malformed') return reject(unexpectedQuote, number, text)
    header = read
    return undefined
  }

  function hold(number: number, text: string): undefined {
    open = { number, lines: [text], bytes: Buffer.byteLength(text) }
  }

  function toEntry(fields: Fields, columns: Columns, line: number, text: string): Entry {
    if (fields.length !== columns.count) {
      const message =
        fields.length > columns.count
          ? `The row has more fields than the header, which has ${columns.count}.`
          : `The row has ${fields.length} fields, but the header has ${columns.count}.`
      return reject({ error: 40003, message }, line, text)
    }
    const id = toPathId(fields[columns.id] ?? '')
    const name = fields[columns.name]
    const tag = fields[columns.tag]
    const refuse = (message: string) => ({ ...reject({ error: 40003, message }, line, text), id })
    if (id === undefined) {
      return refuse(explainId(fields[columns.id]))
    }
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
const noHeader = 'The header row is missing: the first line must name the columns id,name,tag.'
