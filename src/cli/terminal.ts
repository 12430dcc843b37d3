import type { Readable, Writable } from 'node:stream'
import { explainFile } from '../store/file-errors.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import { toPrintable } from './printable.ts'

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

export type OutputStream = Writable & { readonly isTTY?: boolean }

export type ErrorStream = Writable & {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly fd?: number
}

export interface TerminalStreams {
  readonly version: string
  readonly command: string
  readonly input: InputStream
  readonly output: OutputStream
  readonly errors: ErrorStream
}

export function buildTerminal(streams: TerminalStreams): Terminal {
  const { output, errors } = streams
  // A failed write is reported to its caller. Without a reader, messages are lost, and work goes
  // on.
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
  const message = `Cannot write to standard output: ${explainFile(error)}.`
  return new CommandFailed(exitCodes.inputOutput, message, { cause: error })
}
