import { hash } from 'node:crypto'

/** Longer tags are indexed by their hash, so that a look-up reads no more than this of a tag. */
export const maxIndexedBytes = 100

/** The hash of a long tag; null for a tag that is indexed itself. */
export function toTagKey(tag: string): Buffer | null {
  if (Buffer.byteLength(tag) <= maxIndexedBytes) return null
  return hash('sha256', tag, 'buffer')
}
