import type { Plant } from '../contract/shapes.ts'

/** The memory that a row holds in addition to the text of its plant. */
export const rowBytes = 64

/** How much memory a plant holds while it waits. */
export function toHeldBytes({ name, tag = '' }: Plant): number {
  return rowBytes + 2 * (name.length + tag.length)
}
