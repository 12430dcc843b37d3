import { setTimeout as sleep } from 'node:timers/promises'

/** What became of an attempt. `unknown` may have been done, `refused` must not have been. */
export type Outcome = 'ok' | 'refused' | 'unknown'

/** `keyed again` repeats a keyed create that was answered: it must change nothing and answer the same. */
export type Kind = 'create' | 'keyed create' | 'keyed again' | 'replace' | 'delete'

/** What is stored under an id, as far as anybody can see: the name, or nothing. */
export type Content = string | undefined

/** One write, noted before it is sent. */
export interface Attempt {
  readonly id: bigint
  readonly kind: Kind
  /** What it stores: unique, so that it tells whose it is. Nothing for a delete. */
  readonly content: Content
  readonly sentAt: number
  answeredAt: number
  outcome: Outcome
  status?: number
  /** What the answer says is stored now. */
  answered?: Content
  etag?: string | undefined
}

/** One GET of a plant that was acknowledged before. */
export interface Read {
  readonly id: bigint
  readonly sentAt: number
  readonly answeredAt: number
  readonly content: Content
}

/** What is left to do with one id, in this order, by one client at a time. */
export interface Life {
  readonly id: bigint
  readonly steps: Kind[]
}

/** Everything that was asked of one store, whatever happened to the service meanwhile. */
export interface History {
  readonly attempts: Attempt[]
  readonly attemptsById: Map<bigint, Attempt[]>
  /** Ids with an acknowledged write, in the order of the first one. */
  readonly acknowledged: bigint[]
  readonly reads: Read[]
  /** Lives whose keyed create got no answer, to be asked again with the same key. */
  readonly unfinished: Life[]
  lives: number
  /** How many attempts were acknowledged. */
  acknowledgements: number
}

export function newHistory(): History {
  return {
    attempts: [],
    attemptsById: new Map(),
    acknowledged: [],
    reads: [],
    unfinished: [],
    lives: 0,
    acknowledgements: 0,
  }
}

/** Notes an attempt that is about to be sent. What becomes of it is not known until somebody knows. */
export function noteAttempt(
  history: History,
  { id, kind, content }: Pick<Attempt, 'id' | 'kind' | 'content'>,
): Attempt {
  const attempt: Attempt = {
    id,
    kind,
    content,
    sentAt: performance.now(),
    answeredAt: Number.POSITIVE_INFINITY,
    outcome: 'unknown',
  }
  history.attempts.push(attempt)
  const earlier = history.attemptsById.get(id)
  if (earlier === undefined) history.attemptsById.set(id, [attempt])
  else earlier.push(attempt)
  return attempt
}

/** The steps of one life, by turns. Whatever follows an unknown outcome is left out, save for a keyed create. */
const lifeSteps: readonly (readonly Kind[])[] = [
  ['create'],
  ['keyed create', 'keyed again'],
  ['replace', 'replace'],
  ['create', 'delete'],
  ['keyed create', 'delete', 'keyed again'],
  ['create', 'replace'],
]

/** The next life: one that waits for its keyed create, or a new one with an id of its own. */
export function nextLife(history: History): Life {
  const waiting = history.unfinished.pop()
  if (waiting !== undefined) return waiting
  const number = history.lives++
  return { id: toId(number), steps: [...(lifeSteps[number % lifeSteps.length] ?? [])] }
}

/** Small, beyond 2^53, negative, and at both ends of what an id can be: a rounded one is not the same. */
function toId(number: number): bigint {
  const count = BigInt(number)
  const starts = [count, 2n ** 53n + count, -(2n ** 53n) - count, 2n ** 63n - 1n - count]
  return starts[Number((count / BigInt(lifeSteps.length)) % 5n)] ?? -(2n ** 63n) + count
}

/** How long a service may take to acknowledge something: longer than any fault lasts here. */
const maxWaitMs = 60_000

/** Waits until this many more attempts are acknowledged: the load runs, or runs again. */
export async function waitForWrites(history: History, count: number): Promise<void> {
  const enough = history.acknowledgements + count
  const deadline = performance.now() + maxWaitMs
  while (history.acknowledgements < enough) {
    if (performance.now() > deadline) throw new Error('the service serves nobody any more')
    await sleep(1)
  }
}

/** What a history has of each outcome, and of reads. */
export function countOutcomes({ attempts, reads }: History): Record<Outcome | 'reads', number> {
  const count = (wanted: Outcome) => attempts.filter(({ outcome }) => outcome === wanted).length
  return {
    ok: count('ok'),
    refused: count('refused'),
    unknown: count('unknown'),
    reads: reads.length,
  }
}

/** The longest that a write waited for its answer. */
export function longestWaitMs({ attempts }: History): number {
  return Math.round(
    attempts.reduce((most, { sentAt, answeredAt }) => Math.max(most, answeredAt - sentAt), 0),
  )
}
