import type { ErrorNumber } from '../contract/errors.ts'
import type { NewPlant } from '../contract/shapes.ts'

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
  /** The delimiter of the file, if the reader expects another one. */
  readonly delimiter: string | undefined

  constructor(
    error: ErrorNumber,
    line: number,
    reason: string,
    options: { readonly cause?: unknown; readonly delimiter?: string | undefined } = {},
  ) {
    super(`line ${line}: ${reason}`, { cause: options.cause })
    this.name = 'UnreadableFile'
    this.error = error
    this.delimiter = options.delimiter
  }
}
