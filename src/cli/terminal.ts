import type { Readable, Writable } from 'node:stream'
import { explainErrno } from '../errno.ts'

/** Exit codes: as in sysexits.h, or 128 plus the number of a signal. */
export const exitCodes = {
  /** The answer of `check` or `ready` is no. */
  notOk: 1,
  usage: 64,
  /** The input is not what it should be, as a whole or in some of its lines. */
  data: 65,
  noInput: 66,
  unavailable: 69,
  cannotCreate: 73,
  inputOutput: 74,
  config: 78,
  hungUp: 129,
  interrupted: 130,
  brokenPipe: 141,
  terminated: 143,
} as const

/** A command could not do its work. The message is for the operator; an empty one is not shown. */
export class CommandFailed extends Error {
  readonly exitCode: number

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CommandFailed'
    this.exitCode = exitCode
  }
}

/** Where a command reads from and writes to, and the release that runs it. */
export interface Terminal {
  readonly version: string
  /** The command that runs the program, for lines to paste. */
  readonly command: string
  readonly input: Readable & { readonly fd: number }
  /** Standard output, for results of any length. */
  readonly output: OutputStream
  /**
   * Writes a short result to standard output. If that is impossible, throws `CommandFailed`, after
   * undoing what was made: the result may have a secret, which nobody has seen.
   */
  print(text: string, undo?: () => Promise<unknown>): Promise<void>
  /**
   * Writes one line for people to standard error. No control character in it reaches the terminal.
   */
  tell(line: string): void
  /** Shows a line below all others until it is replaced; none if it is empty. */
  showBar(text: string): void
  /** Standard error itself, for the log and the progress bar. */
  readonly errors: OutputStream
}

export type OutputStream = Writable & {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly fd?: number
}

export function buildTerminal(streams: Omit<Terminal, 'print' | 'tell' | 'showBar'>): Terminal {
  const { output, errors } = streams
  // A failed write is reported to its caller. If nobody reads messages, they are lost, and the
  // command continues.
  output.on('error', () => {})
  errors.on('error', () => {})
  let bar = ''

  return {
    ...streams,
    async print(text, undo) {
      const error = await new Promise<unknown>((resolve) => output.write(text, resolve))
      if (!error) return
      await undo?.()
      throw cannotPrint(error as Error)
    },
    tell(line) {
      errors.write(`${bar && wipe}${toPrintable(line)}\n${bar}`)
    },
    showBar(text) {
      if (bar !== text) errors.write(wipe + text)
      bar = text
    },
  }
}

/** Erases the last line of a terminal. */
const wipe = '\r\u001b[K'

/** Why standard output took nothing more. Its reader may have closed it, which needs no message. */
export function cannotPrint(error: Error): CommandFailed {
  if ('code' in error && error.code === 'EPIPE') return new CommandFailed(exitCodes.brokenPipe, '')
  const message = `Cannot write to standard output: ${explainErrno(error)}.`
  return new CommandFailed(exitCodes.inputOutput, message, { cause: error })
}

/** A time in RFC 3339, or what to show where there is none. */
export function toTime(time: number | undefined, none = '-'): string {
  return time === undefined ? none : new Date(time).toISOString()
}

/** The lines of a table, with columns as wide as their longest cell; none if there are no rows. */
export function toTable<Row>(
  rows: readonly Row[],
  columns: Readonly<Record<string, (row: Row) => string>>,
): string[] {
  if (rows.length === 0) return []
  const texts = Object.entries(columns).map(([title, toCell]) => [title, ...rows.map(toCell)])
  const padded = texts.map((column) => {
    const width = Math.max(...column.map(({ length }) => length))
    return column.map((cell) => cell.padEnd(width))
  })
  const toLine = (line: number) => padded.map((column) => column[line]).join('  ')
  return Array.from({ length: rows.length + 1 }, (_, line) => toLine(line).trimEnd())
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

/** Tells how many things are done, and how much of the whole that is where the whole is known. */
export type Report = (count: number, part?: Part) => void

export interface Part {
  readonly done: number
  readonly total: number
}

/** A command whose progress is shown. */
interface Watched {
  readonly flags: { readonly quiet?: boolean | undefined }
  readonly terminal: Terminal
}

/** The time between two updates of the bar, and between two lines where there is no terminal. */
const defaultIntervals = { barMs: 100, lineMs: 5_000 }

const maxBarWidth = 40
const minBarWidth = 5
const defaultColumns = 80

/**
 * Shows how far a command has come: a bar on a terminal, which is removed with the end of the
 * command, a line every few seconds elsewhere, and nothing with `--quiet`.
 */
export function startProgress(
  title: string,
  things: string,
  { flags, terminal }: Watched,
  { barMs, lineMs } = defaultIntervals,
): Report {
  const { errors, tell, showBar } = terminal
  const startedAt = performance.now()
  const isBar = errors.isTTY === true
  let shownAt = startedAt

  return (count, part) => {
    const now = performance.now()
    if (flags.quiet || now - shownAt < (isBar ? barMs : lineMs)) return
    shownAt = now
    const share = part && (part.total === 0 ? 1 : Math.min(1, part.done / part.total))
    const text = describe(toCount(count, things), count, (now - startedAt) / 1000, share)
    if (isBar) showBar(toBarLine(title, text, share, errors.columns || defaultColumns))
    else tell(`${title}: ${text}`)
  }
}

/**
 * One line that leaves the last column free: a line that fills the terminal wraps, and a wipe
 * misses its first half.
 */
function toBarLine(title: string, text: string, share: number | undefined, columns: number) {
  const width = Math.min(maxBarWidth, columns - title.length - text.length - 5)
  if (share === undefined || width < minBarWidth) return `${title} ${text}`.slice(0, columns - 1)
  const filled = Math.floor(width * share)
  return `${title} [${'#'.repeat(filled)}${'.'.repeat(width - filled)}] ${text}`
}

/** The state as text: `1,200,000 plants, 240,000/s, 80 %, 2 s left`. */
function describe(counted: string, count: number, seconds: number, share = 0): string {
  const state = `${counted}, ${formatNumber(Math.round(count / seconds))}/s`
  if (share === 0) return state
  const left = Math.ceil((seconds * (1 - share)) / share)
  const time = left < 60 ? `${left} s` : `${Math.floor(left / 60)} min ${left % 60} s`
  return `${state}, ${Math.floor(share * 100)} %, ${time} left`
}

/** A number of things, named in the plural, or of a unit: `1 plant`, `1,200 plants`, `1 MiB`. */
export function toCount(count: number, things: string): string {
  return `${formatNumber(count)} ${count === 1 ? things.replace(/s$/, '') : things}`
}

/** A number with separators between its thousands. */
export function formatNumber(count: number): string {
  return count.toLocaleString('en')
}
