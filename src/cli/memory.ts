import { setFlagsFromString } from 'node:v8'

/**
 * Tunes V8 for commands that pass millions of rows or requests through. Without it, V8 sees that
 * some survive a few collections, allocates all of them in the old space, and holds a hundred
 * megabytes of garbage there. The old space is collected when it has doubled: V8 would wait for
 * four times of what lives.
 */
export function expectShortLives(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
  setFlagsFromString('--heap-growing-percent=100')
}

/**
 * The same, with still earlier collections: otherwise the heap grows with the number of rows ever
 * seen.
 */
export function expectManyShortLives(): void {
  expectShortLives()
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--heap-growing-percent=20')
}
