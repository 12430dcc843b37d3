import { isUtf8 } from 'node:buffer'
import { Failure } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import { maxLines } from '../contract/shapes.ts'
import type { Line, Refusal } from './entry.ts'

/** A request body plus an id, which PUT has in its path. A longer line is refused. */
export const maxLineBytes = limits.bodyBytes + 64

const shownBytes = 1_000
const newline = 0x0a
const carriageReturn = 0x0d

/** Splits bytes into lines without their newlines. It buffers at most the longest line. */
export async function* readLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Line[]> {
  let number = 0
  /** The beginning of a line that has not ended yet. */
  let rest = Buffer.alloc(0)

  function toLines(block: Buffer): Line[] {
    const bytes = number === 0 ? skipMark(block) : block
    const first = bytes.indexOf(newline)
    const firstBytes = first === -1 ? bytes.length : first
    // Only the first line of a block began in an earlier piece, so no other one can be too long.
    if (firstBytes <= maxLineBytes && isUtf8(bytes)) {
      const texts = bytes.toString('utf8').split('\n')
      return texts.map((text) => ({ number: ++number, text }))
    }
    return split(bytes).map((line) => toLine(++number, line))
  }

  for await (const piece of inPieces(chunks)) {
    const bytes = Buffer.concat([rest, piece])
    const last = bytes.lastIndexOf(newline)
    // A longer beginning would change nothing: the line is too long already.
    rest = bytes.subarray(last + 1, last + 1 + maxLineBytes + 2)
    if (last === -1) continue
    yield toLines(bytes.subarray(0, last))
    if (number > maxLines) throw new Failure(41300, `The body has more than ${maxLines} lines.`)
  }
  if (rest.length > 0) yield toLines(rest)
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

/** Pieces are small, because all lines of a piece are read in one turn of the event loop. */
const maxPieceBytes = 4 * 1024

async function* inPieces(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    for (let start = 0; start < chunk.length; start += maxPieceBytes) {
      yield chunk.subarray(start, start + maxPieceBytes)
    }
  }
}

/**
 * Spreadsheets mark a file as UTF-8 with a byte order mark, which is not part of its first line.
 */
export const byteOrderMark = Buffer.from('\ufeff')

/** The beginning of a file without its byte order mark. */
export function skipMark(bytes: Buffer): Buffer {
  const isMarked = bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark)
  return isMarked ? bytes.subarray(byteOrderMark.length) : bytes
}

function split(block: Buffer): Buffer[] {
  const lines: Buffer[] = []
  let start = 0
  for (let end = block.indexOf(newline); end !== -1; end = block.indexOf(newline, start)) {
    lines.push(block.subarray(start, end))
    start = end + 1
  }
  lines.push(block.subarray(start))
  return lines
}
