import type { NewPlant } from '../contract/shapes.ts'
import type { Line } from './lines.ts'

/** One line, or the lines of one record, of a file: the plant that it holds, or the reason why it is none. */
export type Entry = { readonly line: number; readonly text: string } & (
  | { readonly plant: NewPlant; readonly reason?: undefined }
  | { readonly plant?: undefined; readonly reason: string }
)

/** What a format makes of lines, one after the other; undefined for those that end no entry. */
export interface Reader {
  read(line: Line): Entry | undefined
  /** Tells whether the file may end here. */
  end(): Entry | undefined
}

/** The file as a whole is not what it should be. */
export class UnreadableFile extends Error {
  constructor(line: number, reason: string, options?: ErrorOptions) {
    super(`line ${line}: ${reason}`, options)
    this.name = 'UnreadableFile'
  }
}
