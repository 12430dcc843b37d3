import type { JournalEvent, Position } from '../store/store.ts'

const maxEvents = 1_000
const maxLength = 1024 * 1024

/** The last events that were sent, for those that are a little behind. */
export interface RecentEvents {
  /** Starts anew after this position. */
  begin(position: Position): void
  add(events: readonly JournalEvent[]): void
  /** What was sent after a position; undefined when that is too long ago, or still to come. */
  after(position: Position): readonly JournalEvent[] | undefined
}

export function buildRecentEvents(): RecentEvents {
  let before: Position | undefined
  let events: JournalEvent[] = []
  let length = 0

  return {
    begin(position) {
      before = position
      events = []
      length = 0
    },
    add(added) {
      events.push(...added)
      for (const { plantJson } of added) length += plantJson.length
      let dropped = 0
      while (events.length - dropped > maxEvents || length > maxLength) {
        const { position, plantJson } = events[dropped++] as JournalEvent
        before = position
        length -= plantJson.length
      }
      events.splice(0, dropped)
    },
    after(position) {
      const last = events.findLastIndex((event) => event.position === position)
      if (last === -1 && position !== before) return undefined
      return events.slice(last + 1)
    },
  }
}
