import type { Readable, Writable } from 'node:stream'
import { toPrintable } from './printable.ts'

/** Where a command reads from and writes to, and the release that runs it. */
export interface Terminal {
  readonly version: string
  readonly input: InputStream
  /** Standard output, for results of any length. */
  readonly output: Writable
  /** Writes a short result to standard output. */
  print(text: string): void
  /**
   * Writes one line for people to standard error. No control character in it reaches the terminal.
   */
  tell(line: string): void
  /** Standard error itself, for the log and the progress bar. */
  readonly errors: ErrorStream
}

export type InputStream = Readable & { readonly fd: number }

export type ErrorStream = Writable & {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly fd?: number
}

export interface TerminalStreams {
  readonly version: string
  readonly input: InputStream
  readonly output: Writable
  readonly errors: ErrorStream
}

export function buildTerminal({ version, input, output, errors }: TerminalStreams): Terminal {
  return {
    version,
    input,
    output,
    errors,
    print: (text) => output.write(text),
    tell: (line) => errors.write(`${toPrintable(line)}\n`),
  }
}
