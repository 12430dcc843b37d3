import type { PlantStore } from '../../../client/index.ts'
import { countQuotes, type Fields, parseRecord } from '../../../src/contract/csv-record.ts'
import { int64Bounds } from '../../../src/contract/schema.ts'
import { isStorable, toInt64, toPathId } from '../../../src/contract/values.ts'
import { type FileFormat, isGzip } from './files.ts'

/** How much of a file is checked before it is imported. */
const maxLines = 1_000
const maxCharacters = 1024 * 1024
/** The largest page that the service answers. */
const maxPage = 1_000

/** What the start of a file contains. Nothing is stored. */
export interface FileCheck {
  readonly format: FileFormat
  /** Its format in words. */
  readonly kind: string
  /** Whether the whole file was checked. */
  readonly isWhole: boolean
  readonly ids: readonly bigint[]
  readonly faults: readonly { readonly line: number; readonly message: string }[]
}

const neither = 'The file is neither NDJSON nor CSV with a header such as id,name,tag.'

/** Why a file cannot be imported at all. */
export type Unreadable = { readonly fault: string }

interface Line {
  readonly line: number
  /** The members of a plant; a text says why there are none. */
  readonly members: Readonly<Record<string, unknown>> | string
}

export async function checkFile(file: File): Promise<FileCheck | Unreadable> {
  if (file.size === 0) return { fault: 'The file is empty.' }
  const start = await readStart(file)
  if ('fault' in start) return start
  const format = findFormat(file.name, start.text)
  if (typeof format === 'object') return format
  const delimiter = format === 'csv' ? findDelimiter(start.text) : undefined
  if (format === 'csv' && delimiter === undefined) {
    return { fault: 'The first line must name the columns, each once, such as id,name,tag.' }
  }
  const all = delimiter === undefined ? readJsonLines(start.text) : readCsv(start.text, delimiter)
  // The last line is cut where the part that was read ends.
  if (!start.isWhole) all.pop()
  const lines = all.filter(({ members }) => members !== '')
  const ids: bigint[] = []
  const faults: { line: number; message: string }[] = []
  for (const { line, members } of lines.slice(0, maxLines)) {
    const id = typeof members === 'string' ? members : toId(members)
    if (typeof id === 'bigint') ids.push(id)
    else faults.push({ line, message: id })
  }
  const kind = delimiter === undefined ? 'NDJSON' : `CSV with ${delimiters.get(delimiter)}`
  return { format, kind, isWhole: start.isWhole && lines.length <= maxLines, ids, faults }
}

/** How many of the ids exist; a lower bound if one page does not cover them all. */
export async function countExisting(
  client: PlantStore,
  ids: readonly bigint[],
  signal: AbortSignal,
): Promise<{ count: number; isExact: boolean }> {
  const [first, ...others] = ids
  if (first === undefined) return { count: 0, isExact: true }
  const least = others.reduce((one, other) => (other < one ? other : one), first)
  const after = least === int64Bounds.minimum ? undefined : least - 1n
  const stored = new Set<bigint>()
  let last: bigint = int64Bounds.maximum
  for await (const { id } of client.list({ after, pageSize: maxPage, signal })) {
    stored.add(id)
    last = id
    if (stored.size === maxPage) break
  }
  const isExact = stored.size < maxPage || ids.every((id) => id <= last)
  return { count: new Set(ids.filter((id) => stored.has(id))).size, isExact }
}

async function readStart(file: File): Promise<{ text: string; isWhole: boolean } | Unreadable> {
  const bytes: ReadableStream<Uint8Array<ArrayBuffer>> = isGzip(file)
    ? file.stream().pipeThrough(new DecompressionStream('gzip'))
    : file.stream()
  const reader = bytes.getReader()
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  while (text.length < maxCharacters) {
    const part = await reader.read().catch(() => undefined)
    // Browsers unzip only the first member of a file; the service reads them all.
    if (part === undefined && text !== '') return { text, isWhole: false }
    if (part === undefined) return { fault: 'The file is damaged, or it is not gzip.' }
    try {
      text += decoder.decode(part.value, { stream: !part.done })
    } catch {
      if (!/\.(csv|tsv|txt|ndjson|jsonl)\b/i.test(file.name)) return { fault: neither }
      return {
        fault:
          'The file is not UTF-8. Save it once more: in Excel as “CSV UTF-8”, in LibreOffice ' +
          'with the character set “Unicode (UTF-8)”.',
      }
    }
    if (part.done) return { text, isWhole: true }
  }
  void reader.cancel()
  return { text, isWhole: false }
}

/** The format of a file: by its name, or by how it begins. */
function findFormat(fileName: string, text: string): FileFormat | Unreadable {
  const name = fileName.toLowerCase().replace(/\.gz$/, '')
  if (/\.(csv|tsv)$/.test(name)) return 'csv'
  if (/\.(ndjson|jsonl)$/.test(name)) return 'ndjson'
  const start = text.trimStart()
  if (start.startsWith('{')) return 'ndjson'
  if (findDelimiter(text) !== undefined) return 'csv'
  if (start.startsWith('[')) {
    return { fault: 'The file is a JSON array. NDJSON has one plant on each line, without commas.' }
  }
  return { fault: neither }
}

function readJsonLines(text: string): Line[] {
  return text.split('\n').map((line, index) => ({ line: index + 1, members: readJson(line) }))
}

function readJson(line: string): Line['members'] {
  if (/^[ \t\r]*$/.test(line)) return ''
  try {
    const members = JSON.parse(line, (key, value, context) =>
      key === 'id' && typeof value === 'number' ? toInt64(context?.source ?? `${value}`) : value,
    )
    return typeof members === 'object' && members !== null ? { ...members } : 'This is not a plant.'
  } catch {
    return 'This is not JSON.'
  }
}

const delimiters = new Map([
  [',', 'commas'],
  [';', 'semicolons'],
  ['\t', 'tabs'],
])
const separatorLine = /^"?sep=[^"]"?\r?\n/i

function findDelimiter(text: string): string | undefined {
  const [header = ''] = text
    .replace(separatorLine, '')
    .replace(/^\s*\n/, '')
    .split(/\r?\n/, 1)
  return [...delimiters.keys()].find((delimiter) => {
    const [{ fields = [] } = {}] = splitRecords(header, delimiter)
    const names = fields.filter((name) => name)
    return names.includes('id') && names.includes('name') && new Set(names).size === names.length
  })
}

function readCsv(text: string, delimiter: string): Line[] {
  const records = splitRecords(text.replace(separatorLine, '\n'), delimiter)
  const header = records.findIndex(({ fields }) => fields.includes('id'))
  const names = records[header]?.fields ?? []
  return records.slice(header + 1).map(({ line, fields }) => {
    if (fields.length === 0) return { line, members: 'A quote is missing, or is one too many.' }
    if (fields.length !== names.length) {
      const message = `This line has ${fields.length} fields, but the header has ${names.length}.`
      return { line, members: message }
    }
    const members = Object.fromEntries(names.map((name, index) => [name, fields[index]]))
    const id = members.id === undefined ? undefined : (toPathId(members.id) ?? members.id)
    return { line, members: { ...members, id } }
  })
}

/** The line on which a record begins, and its fields; none if it cannot be read. */
interface CsvRecord {
  readonly line: number
  readonly fields: Fields
}

/** More than a sheet of Excel has. */
const maxFields = 20_000

/** Splits a text into records, as the service does: a quoted field may run over several lines. */
function splitRecords(text: string, delimiter: string): CsvRecord[] {
  const records: CsvRecord[] = []
  let open: string[] = []
  const lines = text.split('\n')
  for (const [index, line] of lines.entries()) {
    open.push(line)
    const isLast = index === lines.length - 1
    // A line with an even number of quotes ends as it began: inside the quoted field.
    if (open.length > 1 && countQuotes(line) % 2 === 0 && !isLast) continue
    const record = open.join('\n').replace(/\r$/, '')
    const fields = parseRecord(record, delimiter, maxFields)
    if (fields === 'open' && !isLast) continue
    const isRead = typeof fields !== 'string'
    if (record !== '') records.push({ line: index + 2 - open.length, fields: isRead ? fields : [] })
    open = []
  }
  return records
}

/** The id of a plant that can be stored, or why it cannot. */
function toId({ id, name, tag }: Readonly<{ [member: string]: unknown }>): bigint | string {
  if (id === undefined) return 'The id is missing.'
  if (typeof id !== 'bigint') return 'The id must be an integer, such as 42.'
  if (name === undefined) return 'The name is missing.'
  if (![name, tag ?? ''].every((text) => typeof text === 'string' && isStorable(text))) {
    return 'The name and the tag must be texts.'
  }
  return tag === null ? 'The tag must be a text, or be left out.' : id
}
