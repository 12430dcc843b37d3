import type { JournalEvent, Position } from '../store/store.ts'

const maxEvents = 1_000
const maxBytes = 1024 * 1024

/** Events that were sent together. */
interface Delivery {
  readonly events: readonly JournalEvent[]
  readonly bytes: number
}

/** The last events that were sent, for those that are a little behind. */
export interface RecentEvents {
  /** Starts anew after this position. */
  begin(position: Position): void
  /** Adds events, and how many bytes they are. The last ones are kept, however many they are. */
  add(events: readonly JournalEvent[], bytes: number): void
  /** What was sent after a position; undefined when that is too long ago, or still to come. */
  after(position: Position): readonly JournalEvent[] | undefined
}

export function buildRecentEvents(): RecentEvents {
  let before: Position | undefined
  let deliveries: Delivery[] = []
  let count = 0
  let size = 0

  return {
    begin(position) {
      before = position
      deliveries = []
      count = 0
      size = 0
    },
    add(added, bytes) {
      deliveries.push({ events: added, bytes })
      count += added.length
      size += bytes
      while (deliveries.length > 1 && (count > maxEvents || size > maxBytes)) {
        const dropped = deliveries.shift() as Delivery
        before = dropped.events.at(-1)?.position
        count -= dropped.events.length
        size -= dropped.bytes
      }
    },
    after(position) {
      const events = deliveries.flatMap((delivery) => delivery.events)
      const last = events.findLastIndex((event) => event.position === position)
      return last === -1 && position !== before ? undefined : events.slice(last + 1)
    },
  }
}
