import { judgeFeed } from './feed-checker.ts'
import type { FinalState, Plants } from './final-state.ts'
import type { Attempt, Content, History, Read } from './history.ts'

/** How often each kind of mistake was seen. */
export type Verdict = Readonly<typeof clean>

export type Wrong = keyof Verdict

export const clean = {
  /** Acknowledged, but missing in the end, or there as it was before. */
  lost: 0,
  /** There, though it was never sent, was refused, or its delete was acknowledged. */
  invented: 0,
  /** Listed twice, or a keyed create that ran twice or changed its answer. */
  duplicate: 0,
  /** A content that was never sent for this id. */
  wrong: 0,
  /** A request that did not see a write that was acknowledged before. */
  stale: 0,
  /** Ids on which GET, list and export disagree in the end. */
  disagreeing: 0,
  /** Acknowledged, but not in the journal. */
  missing: 0,
  /** In the journal more than once, or though it was refused or never sent. */
  extra: 0,
  /** Where the journal, applied to an empty store, does not lead to what is stored. */
  outOfOrder: 0,
}

/** Compares the answers with what was read, under load and in the end. */
export function judge(history: History, state: FinalState): Verdict {
  const verdict = { ...clean }
  const note = (wrong: Wrong | undefined) => {
    if (wrong !== undefined) verdict[wrong]++
  }
  for (const read of history.reads) note(judgeRead(read, history.attemptsById.get(read.id) ?? []))
  const views = [state.got, state.walked, state.exported].map((plants) => new Map(plants))
  for (const plants of [state.walked, state.exported])
    verdict.duplicate += plants.length - new Map(plants).size
  for (const id of new Set([...history.attemptsById.keys(), ...toIds(state)])) {
    const attempts = history.attemptsById.get(id) ?? []
    const contents = views.map((view) => view.get(id))
    // An id that was never written was not read by GET: the other two are enough.
    if (attempts.length > 0 && new Set(contents).size > 1) verdict.disagreeing++
    for (const wrong of judgeAnswers(attempts)) note(wrong)
    const seen = attempts.length > 0 ? contents[0] : (contents[1] ?? contents[2])
    note(judgeEnd(attempts, seen))
  }
  return { ...verdict, ...judgeFeed(history, state) }
}

function toIds({ got, walked, exported }: FinalState): bigint[] {
  return [got, walked, exported].flatMap((plants: Plants) => plants.map(([id]) => id))
}

/** What may be stored after an attempt, given what may have been stored before it. */
function follow(before: ReadonlySet<Content>, attempt: Attempt): ReadonlySet<Content> {
  if (attempt.outcome === 'refused' || attempt.kind === 'keyed again') return before
  if (attempt.outcome === 'ok') return new Set([attempt.content])
  return new Set([...before, attempt.content])
}

const nothing: ReadonlySet<Content> = new Set([undefined])

/** Finds a content that cannot have been there at any time between request and answer. */
export function judgeRead(read: Read, attempts: readonly Attempt[]): Wrong | undefined {
  let possible = nothing
  for (const attempt of attempts) {
    if (attempt.answeredAt < read.sentAt) possible = follow(possible, attempt)
    // It overlaps with the read, which may see it or not.
    else if (attempt.sentAt < read.answeredAt)
      possible = new Set([...possible, ...follow(possible, attempt)])
  }
  if (possible.has(read.content)) return undefined
  return isKnown(read.content, attempts) ? 'stale' : 'wrong'
}

function isKnown(content: Content, attempts: readonly Attempt[]): boolean {
  return content === undefined || attempts.some((attempt) => attempt.content === content)
}

function judgeEnd(attempts: readonly Attempt[], seen: Content): Wrong | undefined {
  const possible = attempts.reduce(follow, nothing)
  if (possible.has(seen)) return undefined
  if (seen === undefined) return 'lost'
  if (attempts.length === 0) return 'invented'
  if (!isKnown(seen, attempts)) return 'wrong'
  if (possible.size > 1 || !possible.has(undefined)) return 'lost'
  return attempts.some(({ kind }) => kind === 'keyed again') ? 'duplicate' : 'invented'
}

/** Finds mistakes in the answers to the writes of one id, without looking into the store. */
function judgeAnswers(attempts: readonly Attempt[]): Wrong[] {
  const wrongs: (Wrong | undefined)[] = []
  let possible = nothing
  let firstKeyed: Attempt | undefined
  for (const attempt of attempts) {
    const { kind, outcome, content, answered } = attempt
    if (outcome === 'ok' && answered !== content) wrongs.push('wrong')
    if (kind === 'keyed create' || kind === 'keyed again') {
      wrongs.push(judgeKeyed(attempt, firstKeyed))
      if (outcome === 'ok') firstKeyed ??= attempt
    } else if (possible.size === 1) wrongs.push(judgeStatus(attempt, possible.has(undefined)))
    possible = follow(possible, attempt)
  }
  return wrongs.filter((wrong) => wrong !== undefined)
}

/** The same key and plant always get the same answer: never that the id or the key is taken. */
function judgeKeyed({ outcome, status, etag }: Attempt, first?: Attempt): Wrong | undefined {
  if (status === 409 || status === 422) return 'duplicate'
  const differs = outcome === 'ok' && first !== undefined && first.etag !== etag
  return differs ? 'duplicate' : undefined
}

/** Finds a status that contradicts what is known to be stored. */
function judgeStatus({ kind, status }: Attempt, isAbsent: boolean): Wrong | undefined {
  if (isAbsent) {
    const isTaken = (kind === 'create' && status === 409) || (kind === 'replace' && status === 200)
    return isTaken ? 'invented' : undefined
  }
  const isMissing = (kind === 'delete' && status === 404) || (kind === 'replace' && status === 201)
  return isMissing ? 'stale' : undefined
}
