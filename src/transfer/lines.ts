import { isUtf8 } from 'node:buffer'
import { limits } from '../contract/limits.ts'

/** A line of a file. A line that cannot be used has a fault, and only the beginning of its text. */
export interface Line {
  readonly number: number
  readonly text: string
  readonly fault?: string
}

/** A line may be as long as the body of a request, plus the id that a PUT has in its path. */
export const maxLineBytes = limits.bodyBytes + 64
const shownBytes = 1_000
const newline = 0x0a

/** Splits bytes into lines without their newlines. It holds at most `maxLineBytes` of a line. */
export async function* readLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Line[]> {
  let number = 0
  let pieces: Buffer[] = []
  let heldBytes = 0
  let isTooLong = false

  function hold(piece: Buffer): void {
    if (isTooLong) return
    pieces.push(piece)
    heldBytes += piece.length
    if (heldBytes <= maxLineBytes) return
    isTooLong = true
    pieces = [Buffer.from(Buffer.concat(pieces).subarray(0, shownBytes))]
  }

  function takeHeld(): Line {
    const held = Buffer.concat(pieces)
    const isMarked = number === 0 && held.subarray(0, byteOrderMark.length).equals(byteOrderMark)
    const bytes = isMarked ? held.subarray(byteOrderMark.length) : held
    const line = isTooLong ? toFaulty(++number, bytes, tooLong) : toLine(++number, bytes)
    pieces = []
    heldBytes = 0
    isTooLong = false
    return line
  }

  /** Decodes the lines that are complete in one chunk together. Nearly all lines are. */
  function decode(block: Buffer): Line[] {
    if (isUtf8(block)) {
      return block
        .toString('utf8')
        .split('\n')
        .map((text) => ({ number: ++number, text }))
    }
    return split(block).map((bytes) => toLine(++number, bytes))
  }

  for await (const chunk of chunks) {
    const first = chunk.indexOf(newline)
    if (first === -1) {
      hold(chunk)
      continue
    }
    hold(chunk.subarray(0, first))
    const lines = [takeHeld()]
    const last = chunk.lastIndexOf(newline)
    if (last > first) for (const line of decode(chunk.subarray(first + 1, last))) lines.push(line)
    if (last + 1 < chunk.length) hold(Buffer.from(chunk.subarray(last + 1)))
    yield lines
  }
  if (heldBytes > 0) yield [takeHeld()]
}

/**
 * Spreadsheets mark a file as UTF-8 with a byte order mark, which is not part of its first line.
 */
const byteOrderMark = Buffer.from('\ufeff')

const tooLong = `The line is longer than ${maxLineBytes} bytes.`

function toLine(number: number, bytes: Buffer): Line {
  if (bytes.length > maxLineBytes) return toFaulty(number, bytes, tooLong)
  return isUtf8(bytes)
    ? { number, text: bytes.toString('utf8') }
    : toFaulty(number, bytes, 'The line is not UTF-8.')
}

function toFaulty(number: number, bytes: Buffer, fault: string): Line {
  return { number, text: bytes.toString('utf8', 0, shownBytes), fault }
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
