import { isUtf8 } from 'node:buffer'
import { type ErrorNumber, Failure } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import { maxLines, maxRefusedText, type NewPlant } from '../contract/shapes.ts'

/** Why a line was not imported: the error that a request with this plant would have got. */
export interface Refusal {
  readonly error: ErrorNumber
  readonly message: string
}

/** A line of a file. An unusable line has a fault, and only the beginning of its text. */
export interface Line {
  readonly number: number
  readonly text: string
  readonly fault?: Refusal
}

/** One record of a file, of one or more lines: its plant, or the reason why it has none. */
export type Entry = { readonly line: number; readonly text: string } & (
  | { readonly plant: NewPlant; readonly refusal?: undefined }
  | { readonly plant?: undefined; readonly id?: bigint | undefined; readonly refusal: Refusal }
)

export interface Header {
  readonly text: string
  readonly delimiter: string
  /** Names of columns that are not stored, the first ones. */
  readonly ignored: readonly string[]
}

/** Turns the lines of one format into entries. */
export interface Reader {
  /** The entry that ends with this line, if one does. */
  read(line: Line): Entry | undefined
  /** The entry that the end of the file cut short, if any. */
  end(): Entry | undefined
  /** The header row, if the format has one and it was read. */
  header(): Header | undefined
}

/** The file cannot be read at all, or not beyond this line. */
export class UnreadableFile extends Error {
  readonly error: ErrorNumber

  constructor(error: ErrorNumber, line: number, reason: string, options?: ErrorOptions) {
    super(`line ${line}: ${reason}`, options)
    this.name = 'UnreadableFile'
    this.error = error
  }
}

/** A request body plus an id, which PUT has in its path. A longer line is refused. */
export const maxLineBytes = limits.bodyBytes + 64

/** What is kept of a line with a fault. A character that JavaScript counts has at most 3 bytes. */
const shownBytes = 3 * maxRefusedText
/** This many lines are read in one turn of the event loop: refusing one takes microseconds. */
const linesInPiece = 64
/** Spreadsheets mark a file as UTF-8 with it. It is not part of the first line. */
export const byteOrderMark = Buffer.from('\ufeff')
/** A line is too long whether or not a mark and a carriage return are among its first bytes. */
const maxKeptBytes = maxLineBytes + byteOrderMark.length + 2
const newline = 0x0a
const carriageReturn = 0x0d

/**
 * Splits bytes into lines without their newlines, some at a time. It buffers at most the longest
 * line.
 */
export async function* readLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Line[]> {
  let number = 0
  /** The beginning of a line that has not ended yet. */
  let rest = Buffer.alloc(0)

  function next(bytes: Buffer): Line {
    number++
    return toLine(number, number === 1 ? skipMark(bytes) : bytes)
  }

  for await (const chunk of chunks) {
    const bytes = Buffer.concat([rest, chunk])
    let lines: Line[] = []
    let start = 0
    for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, start)) {
      lines.push(next(bytes.subarray(start, end)))
      start = end + 1
      if (lines.length < linesInPiece) continue
      yield lines
      lines = []
    }
    yield lines
    if (number > maxLines) throw new Failure(41300, `The body has more than ${maxLines} lines.`)
    // A longer beginning would change nothing: the line is too long already.
    rest = bytes.subarray(start, start + maxKeptBytes)
  }
  if (rest.length > 0) yield [next(rest)]
}

function toLine(number: number, bytes: Buffer): Line {
  // The carriage return of a newline does not count.
  const length = bytes.at(-1) === carriageReturn ? bytes.length - 1 : bytes.length
  const fault = length > maxLineBytes ? tooLong : isUtf8(bytes) ? undefined : notUtf8
  if (fault === undefined) return { number, text: bytes.toString('utf8') }
  return { number, text: bytes.toString('utf8', 0, shownBytes), fault }
}

const tooLong: Refusal = {
  error: 41300,
  message: `The line is longer than ${maxLineBytes} bytes.`,
}
const notUtf8: Refusal = { error: 40001, message: 'The line is not UTF-8.' }

/** The beginning of a file without its byte order mark. */
export function skipMark(bytes: Buffer): Buffer {
  const isMarked = bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark)
  return isMarked ? bytes.subarray(byteOrderMark.length) : bytes
}
