import type { ChildProcess } from 'node:child_process'
import { isDeepStrictEqual } from 'node:util'
import { defaultSettings } from '../../../src/webhooks/settings.ts'
import { clean, judge, judgeRead, type Verdict } from './checker.ts'
import type { FeedEvent } from './feed.ts'
import type { FinalState } from './final-state.ts'
import type { History } from './history.ts'

/** A change that arrived at the receiver. */
export interface Delivery {
  /** The position of the change. */
  readonly id: string
  readonly plantId: string
  readonly receivedAt: number
}

/** A kill or a restart, from its beginning until every service was ready again. */
export interface Fault {
  readonly beganAt: number
  readonly endedAt: number
}

/** An export or a backup that was taken under load. */
export interface Copy {
  readonly kind: 'export' | 'backup'
  readonly sentAt: number
  readonly answeredAt: number
  readonly plants: ReadonlyMap<bigint, string>
}

/** A request with the token that is revoked in the middle. */
export interface Use {
  readonly slot: number
  readonly sentAt: number
  readonly status: number
}

export interface Sample {
  readonly rssMb: number
  readonly descriptors: number
}

/** A process of the service, from its start to its kill. A slot has one process at a time. */
export interface ProcessLife {
  readonly slot: number
  readonly child: Pick<ChildProcess, 'pid' | 'exitCode' | 'signalCode'>
  /** At even intervals. */
  readonly samples: Sample[]
}

/** Everything that a soak has seen. */
export interface Evidence {
  readonly history: History
  readonly state: FinalState & { readonly events: readonly FeedEvent[] }
  readonly feeds: readonly (readonly FeedEvent[])[]
  readonly deliveries: readonly Delivery[]
  readonly faults: readonly Fault[]
  readonly copies: readonly Copy[]
  /** Whether each copy must be the store at one position of the journal. */
  readonly areCopiesMoments: boolean
  /** When the token was revoked, by the monotonic clock and by the other. */
  readonly revoked: { readonly at: number; readonly date: number }
  readonly uses: readonly Use[]
  /** The followers with that token. */
  readonly revokedFeeds: readonly (readonly FeedEvent[])[]
  readonly lives: readonly ProcessLife[]
  /** What each process has logged. */
  readonly logs: readonly string[]
}

/** How often each kind of mistake was seen. */
export interface SoakVerdict extends Verdict {
  /** Followers with a gap, a repetition or another order than the journal. */
  readonly followers: number
  /** Changes that never arrived at the receiver. */
  readonly undelivered: number
  /** Deliveries of something that is not in the journal. */
  readonly forged: number
  /** Changes that first arrived after a later one of the same plant. */
  readonly disordered: number
  /** Arrivals beyond the first that no fault explains, or more than a fault may cause. */
  readonly repeated: number
  /** Plants of a copy that were not as the copy has them at any time while it was taken. */
  readonly copied: number
  /** Copies that mix several moments. */
  readonly mixed: number
  /** Answers and events for a revoked token after its time, and services that never refused it. */
  readonly admitted: number
  /** Figures of a process that have grown too much. */
  readonly grown: number
}

export const cleanSoak: SoakVerdict = {
  ...clean,
  followers: 0,
  undelivered: 0,
  forged: 0,
  disordered: 0,
  repeated: 0,
  copied: 0,
  mixed: 0,
  admitted: 0,
  grown: 0,
}

/** A revoked token stops working within this time, on every process. */
export const revokedWithinMs = 1_000
/** The most that a fault may deliver twice. */
const mostTwice = 16
/** A figure may grow by this factor, and by this many descriptors or MB beyond it. */
const mostGrowth = { factor: 1.5, beyond: 20 }

export function judgeSoak(evidence: Evidence): SoakVerdict {
  const { history, state, feeds, copies, areCopiesMoments } = evidence
  const { events } = state
  return {
    ...judge(history, state),
    followers: feeds.filter((feed) => !isDeepStrictEqual(feed, events)).length,
    ...judgeDeliveries(evidence),
    copied: copies.reduce((sum, copy) => sum + countWrong(copy, history), 0),
    mixed: areCopiesMoments ? copies.filter(({ plants }) => !isMoment(plants, events)).length : 0,
    admitted: countAdmitted(evidence),
    grown: toGrowth(evidence.lives).filter(isGrown).length,
  }
}

function judgeDeliveries({ state: { events }, deliveries, faults }: Evidence) {
  const order = new Map(events.map(({ position }, index) => [position, index]))
  const firstAt = new Map<string, number>()
  const latest = new Map<string, number>()
  let forged = 0
  let disordered = 0
  let unexplained = 0
  for (const { id, plantId, receivedAt } of deliveries) {
    const place = order.get(id)
    const before = firstAt.get(id)
    if (place === undefined) forged++
    else if (before === undefined) {
      if (place < (latest.get(plantId) ?? 0)) disordered++
      latest.set(plantId, place)
      firstAt.set(id, receivedAt)
    } else if (!faults.some(explains(before, receivedAt))) unexplained++
  }
  const again = deliveries.length - forged - firstAt.size
  return {
    undelivered: events.length - firstAt.size,
    forged,
    disordered,
    repeated: unexplained + Math.max(again - mostTwice * faults.length, 0),
  }
}

/**
 * Whether a fault may have caused a second arrival. A service may send with a lease that it has lost
 * by the fault, until its next claim.
 */
const explains = (firstAt: number, againAt: number) => (fault: Fault) =>
  fault.beganAt < againAt && firstAt < fault.endedAt + defaultSettings.leaseMs

function countWrong({ plants, sentAt, answeredAt }: Copy, { attemptsById }: History): number {
  let wrong = [...plants.keys()].filter((id) => !attemptsById.has(id)).length
  for (const [id, attempts] of attemptsById) {
    const read = { id, sentAt, answeredAt, content: plants.get(id) }
    if (judgeRead(read, attempts) !== undefined) wrong++
  }
  return wrong
}

/** Whether these were the plants after some change of the journal, or before the first. */
function isMoment(plants: Copy['plants'], events: readonly FeedEvent[]): boolean {
  const stored = new Map<bigint, string>()
  let differing = plants.size
  for (const { type, plant } of events) {
    if (differing === 0) return true
    const wanted = plants.get(plant.id)
    if (stored.get(plant.id) !== wanted) differing--
    if (type === 'plant.deleted') stored.delete(plant.id)
    else stored.set(plant.id, plant.name)
    if (stored.get(plant.id) !== wanted) differing++
  }
  return differing === 0
}

function countAdmitted({ revoked, uses, revokedFeeds, lives }: Evidence): number {
  const late = uses.filter(({ sentAt }) => sentAt > revoked.at + revokedWithinMs)
  const refusing = new Set(late.filter(({ status }) => status === 401).map(({ slot }) => slot))
  const slots = new Set(lives.map(({ slot }) => slot))
  const told = (revokedFeeds as readonly (readonly (FeedEvent & { at: string })[])[])
    .flat()
    .filter(({ at }) => Date.parse(at) > revoked.date + revokedWithinMs)
  const admitted = late.filter(({ status }) => status < 400).length
  return admitted + told.length + slots.size - refusing.size
}

function isGrown({ from, to }: Growth): boolean {
  return to > from * mostGrowth.factor + mostGrowth.beyond
}

export interface Growth {
  readonly what: string
  readonly from: number
  readonly to: number
  readonly factor: number
}

/**
 * Compares the first process of each slot that came after a kill with the last, at the same age,
 * and a long life with itself. A process needs some time to reach its size.
 */
export function toGrowth(lives: readonly ProcessLife[]): Growth[] {
  const growths: Growth[] = []
  for (const [slot, own] of Map.groupBy(lives, (life) => life.slot)) {
    const [first, last] = [own[own.length > 2 ? 1 : 0]?.samples ?? [], own.at(-1)?.samples ?? []]
    const age = Math.min(first.length, last.length)
    growths.push(
      ...compare(`of service ${slot}`, first.slice(age / 2, age), last.slice(age / 2, age)),
    )
    for (const { samples } of own.filter(({ samples }) => samples.length > longLife)) {
      const quarter = samples.length / 4
      growths.push(
        ...compare(
          `in a life of service ${slot}`,
          samples.slice(quarter, 2 * quarter),
          samples.slice(3 * quarter),
        ),
      )
    }
  }
  return growths
}

/** In samples: a few minutes. */
const longLife = 1_000

function compare(what: string, before: readonly Sample[], after: readonly Sample[]): Growth[] {
  return (['rssMb', 'descriptors'] as const).map((figure) => {
    const [from, to] = [toMedian(before, figure), toMedian(after, figure)]
    return { what: `${figure} ${what}`, from, to, factor: Number((to / from).toFixed(2)) }
  })
}

function toMedian(samples: readonly Sample[], figure: keyof Sample): number {
  const sorted = samples.map((sample) => sample[figure]).sort((a, b) => a - b)
  return Math.round(sorted[Math.floor(sorted.length / 2)] ?? 0)
}
