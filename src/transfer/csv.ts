import { int64Range, toPathId } from '../contract/int64.ts'
import { isStorable } from '../contract/text.ts'
import { type Entry, type Reader, type Refusal, UnreadableFile } from './entry.ts'
import { type Line, linesOfFiles } from './lines.ts'

/**
 * The fields of a record. A field without text is absent; an empty text is written as two quotes.
 */
type Fields = (string | undefined)[]

interface Columns {
  readonly count: number
  readonly id: number
  readonly name: number
  readonly tag: number
}

/** Longer names of columns are shortened in messages. */
const maxShownName = 100

/** The lines of a record whose quoted field has not ended yet. */
interface OpenRecord {
  readonly number: number
  readonly lines: string[]
  bytes: number
}

/** Reads rows under a header row. A quoted field may run over several lines. */
export function buildCsvReader(): Reader {
  let columns: Columns | undefined
  let open: OpenRecord | undefined

  function readLine({ number, text, fault }: Line): Entry | undefined {
    if (open !== undefined) return continueRecord(open, text, fault)
    return fault === undefined ? readRecord(number, text) : reject(fault, number, text)
  }

  /** Rejects a record. Without a header before it, the whole file is unreadable. */
  function reject(refusal: Refusal, line: number, text: string): Entry {
    if (columns === undefined) throw new UnreadableFile(40003, line, refusal.message)
    return { line, text, refusal }
  }

  /** Rejects every line read so far: where the next record begins is unknown. */
  function rejectOpen({ number, lines }: OpenRecord, reason: string): Entry {
    open = undefined
    const through = lines.length === 1 ? '' : ` (through line ${number + lines.length - 1})`
    const refusal = { error: 40001, message: `${reason}${through}.` } as const
    return reject(refusal, number, lines.join('\n'))
  }

  function continueRecord(
    record: OpenRecord,
    text: string,
    fault: Refusal | undefined,
  ): Entry | undefined {
    record.lines.push(text)
    record.bytes += Buffer.byteLength(text) + 1
    if (fault !== undefined) return rejectOpen(record, fault.message.replace(/\.$/, ''))
    if (record.bytes > linesOfFiles.maxBytes) return rejectOpen(record, neverEnds)
    // A line with an even number of quotes ends as it began: inside the quoted field.
    if (countQuotes(text) % 2 === 0) return undefined
    open = undefined
    return readRecord(record.number, record.lines.join('\n'))
  }

  function readRecord(number: number, text: string): Entry | undefined {
    const record = text.endsWith('\r') ? text.slice(0, -1) : text
    const fields = parseRecord(record)
    if (fields === 'open') {
      open = { number, lines: [text], bytes: Buffer.byteLength(text) }
      return undefined
    }
    if (fields === 'malformed') return reject(unexpectedQuote, number, text)
    if (columns === undefined && record.trim() === '') return undefined
    if (columns === undefined) columns = toColumns(fields, number)
    else if (record !== '') return toEntry(fields, columns, number, text)
    return undefined
  }

  return {
    read: readLine,
    end() {
      if (open !== undefined) return rejectOpen(open, neverEnds)
      if (columns === undefined) throw new UnreadableFile(40003, 1, noHeader)
      return undefined
    },
  }
}

const neverEnds = 'A quoted field starts here and does not end'
const unexpectedQuote: Refusal = {
  error: 40001,
  message: 'Unexpected quote: put the whole field in quotes and double the quotes inside.',
}
const noHeader = 'The header row is missing: the first line must name the columns id,name,tag.'

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
  const indexes = new Map<string, number>()
  for (const [index, name = ''] of fields.entries()) {
    if (indexes.has(name)) throw new UnreadableFile(40003, line, namedTwice(name))
    indexes.set(name, index)
  }
  const missing = ['id', 'name'].find((name) => !indexes.has(name))
  if (missing !== undefined) {
    throw new UnreadableFile(
      40003,
      line,
      `The header has no column "${missing}": id and name are required, tag is optional.`,
    )
  }
  const [id = 0, name = 0, tag = -1] = ['id', 'name', 'tag'].map((column) => indexes.get(column))
  return { count: fields.length, id, name, tag }
}

function namedTwice(name: string): string {
  const shown = name.length <= maxShownName ? name : `${name.slice(0, maxShownName)}…`
  return `The header names the column ${JSON.stringify(shown)} twice.`
}

function toEntry(fields: Fields, columns: Columns, line: number, text: string): Entry {
  if (fields.length !== columns.count) {
    const message = `The row has ${fields.length} fields, but the header has ${columns.count}.`
    return { line, text, refusal: { error: 40003, message } }
  }
  const id = toPathId(fields[columns.id] ?? '')
  const name = fields[columns.name]
  const tag = fields[columns.tag]
  const refuse = (message: string) =>
    ({ line, text, id, refusal: { error: 40003, message } }) as const
  if (id === undefined) {
    return refuse(`Column "id" must be an integer ${int64Range}, in digits.`)
  }
  if (name === undefined) return refuse('Column "name" is absent: write "" for an empty name.')
  if (!isStorable(name) || (tag !== undefined && !isStorable(tag))) {
    return refuse('Columns "name" and "tag" must not have NUL characters.')
  }
  return { line, text, plant: tag === undefined ? { id, name } : { id, name, tag } }
}
