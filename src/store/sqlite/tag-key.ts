import { hash } from 'node:crypto'

/** A longer tag is in the index by its hash: a look-up reads no more than this of any other tag. */
export const maxIndexedBytes = 100

/** The hash of a long tag; null for one that is in the index itself. */
export function toTagKey(tag: string): Buffer | null {
  if (Buffer.byteLength(tag) <= maxIndexedBytes) return null
  return hash('sha256', tag, 'buffer')
}
