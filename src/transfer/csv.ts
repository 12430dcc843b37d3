import { int64Range, toPathId } from '../contract/int64.ts'
import { isStorable } from '../contract/text.ts'
import { type Entry, type Reader, UnreadableFile } from './entry.ts'
import { type Line, lineBytes } from './lines.ts'

/** The fields of a record. One with nothing in it is absent; an empty text is written as two quotes. */
type Fields = (string | undefined)[]

interface Columns {
  readonly count: number
  readonly id: number
  readonly name: number
  readonly tag: number
}

interface OpenRecord {
  readonly number: number
  readonly lines: string[]
  length: number
}

/** Reads rows under a header row. A quoted field may run over several lines. */
export function buildCsvReader(): Reader {
  let columns: Columns | undefined
  /** The lines of a record whose quoted field has not ended yet. */
  let open: OpenRecord | undefined

  function readLine({ number, text, fault }: Line): Entry | undefined {
    if (open !== undefined) return continueRecord(open, text, fault)
    return fault === undefined ? takeRecord(number, text) : reject(fault, number, text)
  }

  function reject(reason: string, line: number, text: string): Entry {
    if (columns === undefined) throw new UnreadableFile(line, reason)
    return { line, text, reason }
  }

  /** All lines as far as the last that was read go with it: where the next record would begin is not known. */
  function rejectOpen({ number, lines }: OpenRecord, reason: string): Entry {
    open = undefined
    const until = lines.length === 1 ? '' : ` (as far as line ${number + lines.length - 1})`
    return reject(reason + until, number, lines.join('\n'))
  }

  function continueRecord(
    record: OpenRecord,
    text: string,
    fault: string | undefined,
  ): Entry | undefined {
    record.lines.push(text)
    record.length += text.length + 1
    if (fault !== undefined) return rejectOpen(record, fault)
    if (record.length > lineBytes) return rejectOpen(record, neverEnds)
    // A line with an even number of quotes ends in the state in which it began: inside of them.
    if (countQuotes(text) % 2 === 0) return undefined
    open = undefined
    return takeRecord(record.number, record.lines.join('\n'))
  }

  function takeRecord(number: number, text: string): Entry | undefined {
    const record = text.endsWith('\r') ? text.slice(0, -1) : text
    const fields = parseRecord(record)
    if (fields === 'open') {
      open = { number, lines: [text], length: text.length }
      return undefined
    }
    if (fields === 'malformed') {
      return reject(
        'a quote stands where none may: quote the whole field, and double it',
        number,
        text,
      )
    }
    if (columns === undefined) columns = toColumns(fields, number)
    else if (record !== '') return toEntry(fields, columns, number, text)
    return undefined
  }

  return {
    read: readLine,
    end() {
      if (open !== undefined) return rejectOpen(open, neverEnds)
      if (columns === undefined) throw new UnreadableFile(1, noHeader)
      return undefined
    },
  }
}

const neverEnds = 'a quoted field that begins here does not end'
const noHeader = 'a header row that names the columns is missing: id,name,tag'

function countQuotes(text: string): number {
  let count = 0
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) count++
  return count
}

function parseRecord(record: string): Fields | 'open' | 'malformed' {
  if (!record.includes('"'))
    return record.split(',').map((text) => (text === '' ? undefined : text))
  const fields: Fields = []
  for (let start = 0; ; ) {
    const isQuoted = record[start] === '"'
    const end = isQuoted ? findClosingQuote(record, start + 1) + 1 : findComma(record, start)
    if (isQuoted && end === 0) return 'open'
    const text = record.slice(start, end)
    if (isQuoted) fields.push(text.slice(1, -1).replaceAll('""', '"'))
    else if (text.includes('"')) return 'malformed'
    else fields.push(text === '' ? undefined : text)
    if (end === record.length) return fields
    if (record[end] !== ',') return 'malformed'
    start = end + 1
  }
}

function findComma(record: string, from: number): number {
  const at = record.indexOf(',', from)
  return at === -1 ? record.length : at
}

function findClosingQuote(record: string, from: number): number {
  let at = record.indexOf('"', from)
  while (at !== -1 && record[at + 1] === '"') at = record.indexOf('"', at + 2)
  return at
}

function toColumns(fields: Fields, line: number): Columns {
  const names = fields.map((name) => name ?? '')
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) {
    throw new UnreadableFile(line, `the header names the column ${JSON.stringify(twice)} twice`)
  }
  const missing = ['id', 'name'].find((name) => !names.includes(name))
  if (missing !== undefined) {
    throw new UnreadableFile(
      line,
      `the header names no column "${missing}": it needs id and name, and may have tag`,
    )
  }
  const [id = 0, name = 0, tag = -1] = ['id', 'name', 'tag'].map((column) => names.indexOf(column))
  return { count: names.length, id, name, tag }
}

function toEntry(fields: Fields, columns: Columns, line: number, text: string): Entry {
  if (fields.length !== columns.count) {
    const reason = `the row has ${fields.length} fields, and the header ${columns.count}`
    return { line, text, reason }
  }
  const id = toPathId(fields[columns.id] ?? '')
  const name = fields[columns.name]
  const tag = fields[columns.tag]
  if (id === undefined) {
    return { line, text, reason: `The column "id" must be an integer ${int64Range}, in digits.` }
  }
  if (name === undefined) {
    return { line, text, reason: 'The column "name" is absent: an empty name is written as "".' }
  }
  if (!isStorable(name) || (tag !== undefined && !isStorable(tag))) {
    return { line, text, reason: 'The columns "name" and "tag" must have no NUL characters.' }
  }
  return { line, text, plant: tag === undefined ? { id, name } : { id, name, tag } }
}
