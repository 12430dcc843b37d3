import { waitUntil } from '../../support/wait.ts'

/** The outcome of an attempt. `unknown` may be stored, `refused` must not be. */
export type Outcome = 'ok' | 'refused' | 'unknown'

/** `keyed again` repeats an answered keyed create: it changes nothing and gets the same answer. */
export type Kind = 'create' | 'keyed create' | 'keyed again' | 'replace' | 'delete'

/** The visible content of an id: the name of its plant, or nothing. */
export type Content = string | undefined

/** A write, noted before it is sent. */
export interface Attempt {
  readonly id: bigint
  readonly kind: Kind
  /** What it stores, unique to this attempt. Nothing for a delete. */
  readonly content: Content
  readonly sentAt: number
  answeredAt: number
  outcome: Outcome
  status?: number
  /** What the answer says is stored now. */
  answered?: Content
  etag?: string | undefined
}

/** A plant that was acknowledged before, as a GET or an export has it. */
export interface Read {
  readonly id: bigint
  readonly sentAt: number
  readonly answeredAt: number
  readonly content: Content
}

/** The remaining steps of an id, taken in order by one client at a time. */
export interface Life {
  readonly id: bigint
  readonly steps: Kind[]
}

/** All requests to one store, over every restart of its services. */
export type History = ReturnType<typeof newHistory>

export function newHistory(clock = () => performance.now()) {
  return {
    /** Tells the times of the attempts. */
    clock,
    attempts: [] as Attempt[],
    attemptsById: new Map<bigint, Attempt[]>(),
    /** Ids in the order of their first acknowledged write. */
    acknowledged: [] as bigint[],
    reads: [] as Read[],
    /** Lives whose keyed create got no answer: it is sent again with the same key. */
    unfinished: [] as Life[],
    lives: 0,
    /** How many attempts were acknowledged. */
    acknowledgements: 0,
    /** How many exports were read. */
    exports: 0,
  }
}

/** Notes an attempt that is about to be sent, with an unknown outcome. */
export function noteAttempt(
  history: History,
  { id, kind, content }: Pick<Attempt, 'id' | 'kind' | 'content'>,
): Attempt {
  const attempt: Attempt = {
    id,
    kind,
    content,
    sentAt: history.clock(),
    answeredAt: Number.POSITIVE_INFINITY,
    outcome: 'unknown',
  }
  history.attempts.push(attempt)
  const earlier = history.attemptsById.get(id)
  if (earlier === undefined) history.attemptsById.set(id, [attempt])
  else earlier.push(attempt)
  return attempt
}

/** The attempts as they stood at a moment: without an answer by then, the outcome is unknown. */
export function toHistoryAt(history: History, at: number): History {
  const then = newHistory()
  for (const attempt of history.attempts) {
    if (attempt.sentAt > at) continue
    const noted = noteAttempt(then, attempt)
    Object.assign(noted, attempt.answeredAt <= at ? attempt : { sentAt: attempt.sentAt })
  }
  return then
}

/** The steps of a life, by turns. An unknown outcome ends it, except that of a keyed create. */
const lifeSteps: readonly (readonly Kind[])[] = [
  ['create'],
  ['keyed create', 'keyed again'],
  ['replace', 'replace'],
  ['create', 'delete'],
  ['keyed create', 'delete', 'keyed again'],
  ['create', 'replace'],
]

/** The next life: one with an unanswered keyed create, or a new one with an id of its own. */
export function nextLife(history: History): Life {
  const waiting = history.unfinished.pop()
  if (waiting !== undefined) return waiting
  const number = history.lives++
  return { id: toId(number), steps: [...(lifeSteps[number % lifeSteps.length] ?? [])] }
}

/** Ids that are small, beyond 2^53, negative and at both ends of int64, to catch rounding. */
function toId(number: number): bigint {
  const count = BigInt(number)
  const starts = [count, 2n ** 53n + count, -(2n ** 53n) - count, 2n ** 63n - 1n - count]
  return starts[Number((count / BigInt(lifeSteps.length)) % 5n)] ?? -(2n ** 63n) + count
}

/** Waits until this many more attempts are acknowledged. */
export function waitForWrites(history: History, count: number): Promise<void> {
  const enough = history.acknowledgements + count
  return waitUntil(() => history.acknowledgements >= enough, `${count} more acknowledged writes`)
}

/** Counts the attempts by outcome, and the reads. */
export function countOutcomes({ attempts, reads }: History): Record<Outcome | 'reads', number> {
  const count = (wanted: Outcome) => attempts.filter(({ outcome }) => outcome === wanted).length
  return {
    ok: count('ok'),
    refused: count('refused'),
    unknown: count('unknown'),
    reads: reads.length,
  }
}

/** The longest time that a write waited for its answer. */
export function longestWaitMs({ attempts }: History): number {
  return Math.round(
    attempts.reduce((most, { sentAt, answeredAt }) => Math.max(most, answeredAt - sentAt), 0),
  )
}
