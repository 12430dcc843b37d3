import { isUtf8 } from 'node:buffer'
import { type ErrorNumber, Failure } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import { maxLines } from '../contract/shapes.ts'

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

/** A request body plus an id, which PUT has in its path. A longer line is refused. */
export const maxLineBytes = limits.bodyBytes + 64

const shownBytes = 1_000
const newline = 0x0a
const carriageReturn = 0x0d

/** Splits bytes into lines without their newlines. It buffers at most the longest line. */
export async function* readLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Line[]> {
  let number = 0
  let pieces: Buffer[] = []
  let heldBytes = 0
  let isTooLong = false
  const tooLong = `The line is longer than ${maxLineBytes} bytes.`

  function hold(piece: Buffer): void {
    if (isTooLong) return
    pieces.push(piece)
    heldBytes += piece.length
    // The carriage return of a newline does not count.
    if (heldBytes > maxLineBytes + 1) markTooLong()
  }

  function markTooLong(): void {
    isTooLong = true
    pieces = [Buffer.from(Buffer.concat(pieces).subarray(0, shownBytes))]
  }

  /** Checks the length of the buffered line, which is complete. */
  function endLine(): void {
    if (heldBytes === maxLineBytes + 1 && pieces.at(-1)?.at(-1) !== carriageReturn) markTooLong()
  }

  function requireFewLines(): void {
    if (number > maxLines) throw new Failure(41300, `The body has more than ${maxLines} lines.`)
  }

  function takeHeld(): Line {
    const held = Buffer.concat(pieces)
    const bytes = number === 0 ? skipMark(held) : held
    const line = isTooLong ? toFaulty(++number, bytes, 41300, tooLong) : toLine(bytes)
    pieces = []
    heldBytes = 0
    isTooLong = false
    return line
  }

  function toLine(bytes: Buffer): Line {
    return isUtf8(bytes)
      ? { number: ++number, text: bytes.toString('utf8') }
      : toFaulty(++number, bytes, 40001, 'The line is not UTF-8.')
  }

  /** Decodes all lines that are complete within a chunk at once. Nearly all lines are. */
  function decode(block: Buffer): Line[] {
    if (!isUtf8(block)) return split(block).map(toLine)
    const texts = block.toString('utf8').split('\n')
    return texts.map((text) => ({ number: ++number, text }))
  }

  for await (const chunk of inPieces(chunks)) {
    const first = chunk.indexOf(newline)
    if (first === -1) {
      hold(chunk)
      continue
    }
    hold(chunk.subarray(0, first))
    endLine()
    const lines = [takeHeld()]
    const last = chunk.lastIndexOf(newline)
    if (last > first) for (const line of decode(chunk.subarray(first + 1, last))) lines.push(line)
    if (last + 1 < chunk.length) hold(Buffer.from(chunk.subarray(last + 1)))
    yield lines
    requireFewLines()
  }
  if (heldBytes === 0) return
  endLine()
  yield [takeHeld()]
}

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

function toFaulty(number: number, bytes: Buffer, error: Refusal['error'], message: string): Line {
  return { number, text: bytes.toString('utf8', 0, shownBytes), fault: { error, message } }
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
