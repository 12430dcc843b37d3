import type { Verdict } from './checker.ts'
import type { FinalState } from './final-state.ts'
import type { Attempt, History } from './history.ts'
import type { FeedEvent } from './mirror.ts'

/** Compares the journal with the answers, and with what is stored in the end. */
export function judgeFeed(
  history: History,
  { events, walked }: Pick<FinalState, 'events' | 'walked'>,
): Pick<Verdict, 'missing' | 'extra' | 'outOfOrder'> {
  if (events === undefined) return { missing: 0, extra: 0, outOfOrder: 0 }
  const counts = new Map<string, number>()
  for (const event of events) {
    // Plants that a test made by itself are none of the history.
    if (!history.attemptsById.has(event.plant.id)) continue
    const name = toEventName(event)
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  // Several attempts of a keyed create make one change at most.
  const effects = Map.groupBy(history.attempts.filter(isChange), toAttemptName)
  let missing = 0
  let extra = 0
  for (const [name, attempts] of effects) {
    const count = counts.get(name) ?? 0
    counts.delete(name)
    const possible = attempts.some(({ outcome }) => outcome !== 'refused') ? 1 : 0
    if (count > possible) extra++
    if (count === 0 && attempts.some(({ outcome }) => outcome === 'ok')) missing++
  }
  return { missing, extra: extra + counts.size, outOfOrder: countMisplaced(events, walked) }
}

function isChange({ kind }: Attempt): boolean {
  return kind !== 'keyed again'
}

function toAttemptName({ id, kind, content }: Attempt): string {
  return kind === 'delete' ? `${id} deleted` : `${id} ${content}`
}

function toEventName({ type, plant }: FeedEvent): string {
  return type === 'plant.deleted' ? `${plant.id} deleted` : `${plant.id} ${plant.name}`
}

/** How many changes do not fit the ones before them, or what is stored in the end. */
export function countMisplaced(
  events: readonly FeedEvent[],
  stored: Iterable<readonly [bigint, string]>,
): number {
  const plants = new Map<bigint, string>()
  let misplaced = 0
  for (const { type, plant } of events) {
    if ((type === 'plant.created') === plants.has(plant.id)) misplaced++
    if (type === 'plant.deleted') {
      if (plants.get(plant.id) !== plant.name) misplaced++
      plants.delete(plant.id)
    } else plants.set(plant.id, plant.name)
  }
  for (const [id, name] of stored) {
    if (plants.get(id) !== name) misplaced++
    plants.delete(id)
  }
  return misplaced + plants.size
}
