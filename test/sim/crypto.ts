/** Stands in for `node:crypto` in the source: randomness comes from the seed, nothing is signed. */
import { world } from './world.ts'

export * from 'node:crypto'

export function randomBytes(size: number): Buffer {
  return Buffer.from(Array.from({ length: size }, () => world().pick(256)))
}

export function randomInt(max: number): number {
  return world().pick(max)
}

export function randomUUID(): string {
  return randomBytes(16).toString('hex')
}

export function createHmac() {
  const hmac = { update: () => hmac, digest: () => '' }
  return hmac
}
