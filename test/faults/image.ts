/** The bytes of a file, of which there may be room for more than it has. */
export interface Image {
  bytes: Buffer
  length: number
}

/** A write or, without data, a truncate. */
export interface Change {
  readonly offset: number
  readonly data: Buffer | undefined
}

export const pageBytes = 4096

export function newImage(): Image {
  return { bytes: Buffer.alloc(0), length: 0 }
}

export function change(image: Image, { offset, data }: Change): void {
  if (data === undefined) {
    resize(image, offset)
    return
  }
  if (offset + data.length > image.length) resize(image, offset + data.length)
  data.copy(image.bytes, offset)
}

/** A file that grows has zeros in its new part. */
export function resize(image: Image, length: number): void {
  if (length < image.length) image.bytes.fill(0, length, image.length)
  if (length > image.bytes.length) {
    image.bytes = Buffer.concat([image.bytes, Buffer.alloc(2 * length - image.bytes.length)])
  }
  image.length = length
}

/** A write as one for each piece of the file, such as a sector, that it touches. */
export function split(whole: Change, pieceBytes: number): Change[] {
  const { offset, data } = whole
  if (data === undefined) return [whole]
  const pieces: Change[] = []
  for (let start = 0; start < data.length; ) {
    const end = Math.min(data.length, start + pieceBytes - ((offset + start) % pieceBytes))
    pieces.push({ offset: offset + start, data: data.subarray(start, end) })
    start = end
  }
  return pieces
}

export function toPage({ offset }: Change): number {
  return Math.floor(offset / pageBytes)
}
