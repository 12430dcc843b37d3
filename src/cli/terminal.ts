import type { Readable, Writable } from 'node:stream'
import { explainErrno } from '../errno.ts'
import { CommandFailed, exitCodes } from './exit.ts'

/** Where a command reads from and writes to, and the release that runs it. */
export interface Terminal {
  readonly version: string
  /** The command that runs the program, for lines to paste. */
  readonly command: string
  readonly input: InputStream
  /** Standard output, for results of any length. */
  readonly output: OutputStream
  /** Writes a short result to standard output. Throws `CommandFailed` where that is impossible. */
  print(text: string): Promise<void>
  /**
   * Writes one line for people to standard error. No control character in it reaches the terminal.
   */
  tell(line: string): void
  /** Standard error itself, for the log and the progress bar. */
  readonly errors: ErrorStream
}

export type InputStream = Readable & { readonly fd: number }

type OutputStream = Writable & { readonly isTTY?: boolean }

export type ErrorStream = Writable & {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly fd?: number
}

export function buildTerminal(streams: Omit<Terminal, 'print' | 'tell'>): Terminal {
  const { output, errors } = streams
  // A failed write is reported to its caller. If nobody reads messages, they are lost, and the
  // command continues.
  output.on('error', () => {})
  errors.on('error', () => {})

  return {
    ...streams,
    print: (text) =>
      new Promise((resolve, reject) => {
        output.write(text, (error) => (error ? reject(cannotPrint(error)) : resolve()))
      }),
    tell: (line) => errors.write(`${toPrintable(line)}\n`),
  }
}

/** Why standard output took nothing more. Its reader may have closed it, which needs no message. */
export function cannotPrint(error: Error): CommandFailed {
  if ('code' in error && error.code === 'EPIPE') return new CommandFailed(exitCodes.brokenPipe, '')
  const message = `Cannot write to standard output: ${explainErrno(error)}.`
  return new CommandFailed(exitCodes.inputOutput, message, { cause: error })
}

/** The lines of a table, with columns as wide as their longest cell. */
export function toTable(rows: readonly (readonly string[])[]): string[] {
  const [titles = []] = rows
  const widths = titles.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** Characters that a terminal interprets: controls, line ends, text direction. */
const unprintable = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/**
 * Text that is safe to show on one line: an unprintable character becomes an escape like \u001b.
 */
export function toPrintable(text: string): string {
  return text.replaceAll(
    unprintable,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** The same for several lines. */
export function toPrintableLines(text: string): string {
  return text.split('\n').map(toPrintable).join('\n')
}
