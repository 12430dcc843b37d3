import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { StoreLocation } from '../store/open.ts'
import type { Entry, Reader } from '../transfer/entry.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import { explainWrite, type FileForm, type Input, isSameFile } from './files.ts'
import type { Progress } from './progress.ts'
import { isFileOfStore } from './stores.ts'
import { toPrintable } from './terminal.ts'

/** Where rejected lines go, each with its number and the reason. */
interface Rejects {
  add(entry: Entry, reason: string): Promise<void>
  close(): Promise<void>
}

/** More lines than this belong in a file. */
const maxShown = 100

/** A file of rejects has no more lines than this. */
const maxWritten = 100_000

/** A small gzip file may expand to long lines, and its rejects must not fill the disk. */
const maxTextCharacters = 4_096
const charactersPerWrite = 64 * 1024

/** The beginning of every file of rejects: the first member, or the names of two columns. */
const firstMember = '{"line":'
const addedColumns = ['rejected_line', 'rejected_reason'] as const

/** Refuses a file whose content would be lost: anything but the rejects of an earlier import. */
export function requireRejectsFile(path: string, input: Input, location: StoreLocation): void {
  try {
    const fault = findFault(path, input, location)
    if (fault === undefined) return
    const message = `--rejects ${path} ${fault}. Name another file.`
    throw new CommandFailed(exitCodes.cannotCreate, message)
  } catch (error) {
    throw explainWrite(`--rejects ${path}`, error)
  }
}

function findFault(path: string, input: Input, location: StoreLocation): string | undefined {
  const isNew = !existsSync(path)
  if (!isNew && !statSync(path).isFile()) return undefined
  if (isSameFile(path, input.file)) return 'is the file to import'
  if (isFileOfStore(path, location)) return 'is a file of the store'
  if (isNew) return undefined
  const start = readStart(path)
  const isOurs = start.startsWith(firstMember) || start.startsWith(addedColumns[0])
  if (start === '' || isOurs) return undefined
  return 'holds something other than rejected lines and was not changed'
}

function readStart(path: string): string {
  const file = openSync(path, 'r')
  try {
    const start = Buffer.alloc(addedColumns[0].length)
    return start.toString('latin1', 0, readSync(file, start))
  } finally {
    closeSync(file)
  }
}

/**
 * Opens the file for rejected lines, or shows them where none is named. Rows of CSV stay rows,
 * under their header, so that the file can be corrected and imported.
 */
export async function openRejects(
  path: string | undefined,
  { format }: FileForm,
  header: Reader['header'],
  progress: Progress,
): Promise<Rejects> {
  if (path === undefined) return showRejects(progress)
  const toLine = format === 'csv' ? buildRowWriter(header) : toRejectLine
  const file = await open(path, 'w', 0o600).catch(rethrow(path))
  return writeRejects(path, file, toLine, progress)
}

function rethrow(path: string): (error: unknown) => never {
  return (error) => {
    throw explainWrite(`--rejects ${path}`, error)
  }
}

type ToLine = (line: number, reason: string, text: string) => string

function writeRejects(path: string, file: FileHandle, toLine: ToLine, progress: Progress): Rejects {
  let count = 0
  let unwritten = ''

  async function write(): Promise<void> {
    await file.appendFile(unwritten).catch(rethrow(path))
    unwritten = ''
  }

  return {
    async add({ line, text }, reason) {
      count++
      if (count > maxWritten + 1) return
      if (count > maxWritten) {
        progress.note(`${path} ends here: it has ${maxWritten.toLocaleString('en')} lines.`)
      } else {
        unwritten += `${toLine(line, reason, text)}\n`
        if (unwritten.length >= charactersPerWrite) await write()
      }
    },
    async close() {
      try {
        await write()
      } finally {
        await file.close()
      }
    },
  }
}

/** A rejected line as JSON, with escapes for what a terminal would obey. A long text is cut. */
function toRejectLine(line: number, reason: string, text: string): string {
  const omittedCharacters = text.length - maxTextCharacters
  const reject =
    omittedCharacters > 0
      ? { line, reason, text: text.slice(0, maxTextCharacters), omittedCharacters }
      : { line, reason, text }
  return toPrintable(JSON.stringify(reject))
}

/** Writes rows of CSV with their numbers and reasons in two columns before them. */
function buildRowWriter(header: Reader['header']): ToLine {
  let isFirst = true

  return (line, reason, text) => {
    const { text: head, delimiter } = header() ?? { text: '', delimiter: ',' }
    // The corrected rejects of an earlier import already have these columns.
    const added = addedColumns.join(delimiter) + delimiter
    const isCorrected = head.replaceAll('"', '').startsWith(added)
    const toOwn = (record: string) => (isCorrected ? skipTwo(record, delimiter) : record)
    const row = toOwn(text).replace(/\r$/, '')
    const record = `${line}${delimiter}"${reason.replaceAll('"', '""')}"${delimiter}${row}`
    const start = isFirst ? `${added}${toOwn(head)}\n` : ''
    isFirst = false
    return start + record
  }
}

/** A row without its first two fields. A spreadsheet decides which of them have quotes. */
function skipTwo(row: string, delimiter: string): string {
  const end = RegExp.escape(delimiter)
  return row.replace(new RegExp(`^(?:(?:"[^"]*(?:""[^"]*)*"|[^${end}]*)${end}){2}`), '')
}

function showRejects(progress: Progress): Rejects {
  let count = 0
  return {
    async add({ line }, reason) {
      count++
      if (count <= maxShown) progress.note(`line ${line}: ${reason}`)
      else if (count === maxShown + 1)
        progress.note('More lines were rejected. Use --rejects FILE to keep them.')
    },
    async close() {},
  }
}
