/** The bytes of a file, in a buffer that may be larger. */
export interface Image {
  bytes: Buffer
  length: number
}

/** A write, or a truncate without data. */
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

/** Resizes an image. New bytes are zeros. */
export function resize(image: Image, length: number): void {
  if (length < image.length) image.bytes.fill(0, length, image.length)
  if (length > image.bytes.length) {
    image.bytes = Buffer.concat([image.bytes, Buffer.alloc(2 * length - image.bytes.length)])
  }
  image.length = length
}

/** Splits a write at the borders of the pieces of the file, such as sectors. */
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
