import { clean, judge } from './checker.ts'
import type { FinalState } from './final-state.ts'
import type { History } from './history.ts'
import { type FeedEvent, judgeMirror, type Seen } from './mirror.ts'

/** A change that arrived at the receiver. */
export interface Delivery {
  /** The position of the change. */
  readonly id: string
  readonly plantId: string
  readonly receivedAt: number
}

/** A kill or another fault, from its beginning to its end. */
export interface Period {
  readonly beganAt: number
  readonly endedAt: number
  /** How many changes it may deliver twice. */
  readonly mostTwice: number
}

/** Everything that a trial has seen. */
export interface Evidence {
  readonly history: History
  readonly state: FinalState & { readonly events: readonly FeedEvent[] }
  readonly mirrors: readonly (readonly Seen[])[]
  readonly deliveries: readonly Delivery[]
  readonly faults: readonly Period[]
}

/** How often each kind of mistake was seen. */
export type TrialVerdict = Readonly<typeof cleanTrial>

export const cleanTrial = {
  ...clean,
  /** Changes that came to a mirror before or after their turn, or again. */
  skipped: 0,
  /** Positions at which a mirror was not as the store was. */
  untrue: 0,
  /** Changes that never arrived at the receiver. */
  undelivered: 0,
  /** Deliveries of something that is not in the journal. */
  forged: 0,
  /** Changes that first arrived after a later one of the same plant. */
  disordered: 0,
  /** Arrivals beyond the first that no fault explains, or more than a fault may cause. */
  repeated: 0,
}

/** What a kill may deliver twice: what is in flight, or not saved. */
export const inFlight = 16
/** A service may send with a lease that it has lost by a fault, until its next claim. */
const leaseMs = 5_000

/** Compares the answers, the followers and what has arrived with what is stored in the end. */
export function judgeTrial(evidence: Evidence): TrialVerdict {
  const { history, state, mirrors, deliveries, faults } = evidence
  const { events } = state
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
  const mirrored = mirrors.map((seen) => judgeMirror(seen, events))
  const again = deliveries.length - forged - firstAt.size
  return {
    ...judge(history, state),
    skipped: sum(mirrored.map(({ skipped }) => skipped)),
    untrue: sum(mirrored.map(({ untrue }) => untrue)),
    undelivered: events.length - firstAt.size,
    forged,
    disordered,
    repeated: unexplained + Math.max(again - sum(faults.map(({ mostTwice }) => mostTwice)), 0),
  }
}

const sum = (counts: readonly number[]) => counts.reduce((all, count) => all + count, 0)

/** Whether a fault may have caused a second arrival. */
const explains = (firstAt: number, againAt: number) => (fault: Period) =>
  fault.beganAt < againAt && firstAt < fault.endedAt + leaseMs
