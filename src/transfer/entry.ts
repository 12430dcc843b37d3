import type { NewPlant } from '../contract/shapes.ts'
import type { Line } from './lines.ts'

/**
 * One record of a file: its plant, or the reason why it has none. A record may have several lines.
 */
export type Entry = { readonly line: number; readonly text: string } & (
  | { readonly plant: NewPlant; readonly reason?: undefined }
  | { readonly plant?: undefined; readonly reason: string }
)

/** Turns the lines of one format into entries. */
export interface Reader {
  /** The entry that ends with this line, if one does. */
  read(line: Line): Entry | undefined
  /** The entry that the end of the file cut short, if there is one. */
  end(): Entry | undefined
}

/** The file as a whole cannot be read. */
export class UnreadableFile extends Error {
  constructor(line: number, reason: string, options?: ErrorOptions) {
    super(`line ${line}: ${reason}`, options)
    this.name = 'UnreadableFile'
  }
}
