import type { Server } from './server.ts'

/** `spec` is the specification of the one operation; `contract` is what this service adds. */
export type Part = 'spec' | 'contract'

/** A promise, and how to see from outside whether a server keeps it. */
export interface Promised {
  /** Never used again for another promise. */
  readonly number: string
  readonly part: Part
  readonly sentence: string
  /** Throws `Broken` if the promise does not hold, and `Unseen` if that cannot be seen. */
  run(server: Server): Promise<unknown>
}

export function spec(number: number, sentence: string, run: Promised['run']): Promised {
  return { number: `S${number}`, part: 'spec', sentence, run }
}

export function contract(number: number, sentence: string, run: Promised['run']): Promised {
  return { number: `C${number}`, part: 'contract', sentence, run }
}
