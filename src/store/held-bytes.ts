import type { Plant } from '../contract/shapes.ts'

/** The memory that a row holds beside the text of its plant. */
export const rowBytes = 64

/** How much memory a plant holds while it waits. */
export function toBytes({ name, tag = '' }: Plant): number {
  return rowBytes + 2 * (name.length + tag.length)
}
