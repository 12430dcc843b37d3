import { setFlagsFromString } from 'node:v8'

/**
 * Tunes V8 for commands through which millions of rows or requests pass. Without it, V8 sees that
 * some survive a few collections, allocates all of them in the old space, and holds a hundred
 * megabytes of garbage there. The old space is collected when it has doubled: V8 would wait until
 * it is four times as large.
 */
export function tuneHeap(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
  setFlagsFromString('--heap-growing-percent=100')
}

/**
 * The same, with still earlier collections: otherwise the heap grows with the number of rows ever
 * seen.
 */
export function tuneHeapForRows(): void {
  tuneHeap()
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--heap-growing-percent=20')
}
