import type { ErrorNumber } from '../contract/errors.ts'
import type { NewPlant } from '../contract/shapes.ts'
import type { Line } from './lines.ts'

/** Why a line was not taken: the error that the plant alone would have got, in words. */
export interface Refusal {
  readonly error: ErrorNumber
  readonly message: string
}

/**
 * One record of a file: its plant, or the reason why it has none. A record may have several lines.
 */
export type Entry = { readonly line: number; readonly text: string } & (
  | { readonly plant: NewPlant; readonly refusal?: undefined }
  | { readonly plant?: undefined; readonly id?: bigint | undefined; readonly refusal: Refusal }
)

export interface Header {
  readonly text: string
  readonly delimiter: string
}

/** Turns the lines of one format into entries. */
export interface Reader {
  /** Whether blank lines can be a part of an entry. They are not read where they cannot. */
  readonly hasBlankLines: boolean
  /** The entry that ends with this line, if one does. */
  read(line: Line): Entry | undefined
  /** The entry that the end of the file cut short, if there is one. */
  end(): Entry | undefined
  /** The header row as it was read, in a format that has one. */
  header(): Header | undefined
}

/** The file as a whole cannot be read, or no further than to this line. */
export class UnreadableFile extends Error {
  readonly error: ErrorNumber
  /** The delimiter that the file has, if it has another one than the reader. */
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
