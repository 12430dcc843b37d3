import { setFlagsFromString } from 'node:v8'

/**
 * For commands that pass millions of rows through. V8 sees many of them outlive a few collections, and from then on puts
 * all of them where it cleans up rarely: a hundred megabytes of rows that nobody needs any more.
 */
export function expectShortLives(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}

/** The same, and memory is cleaned up early: it would grow with the number of rows that were ever seen. */
export function expectManyShortLives(): void {
  expectShortLives()
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--heap-growing-percent=20')
}
