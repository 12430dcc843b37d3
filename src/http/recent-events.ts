import type { Position } from '../store/store.ts'

/** An event as it is sent to everybody. */
export interface SentEvent {
  readonly position: Position
  readonly text: string
}

const maxEvents = 1_000
const maxLength = 1024 * 1024

/** The last events that were sent, for those that are a little behind. */
export interface RecentEvents {
  /** Starts anew after this position. */
  begin(position: Position): void
  add(events: readonly SentEvent[]): void
  /** What was sent after a position; undefined when that is too long ago, or still to come. */
  after(position: Position): string | undefined
}

export function buildRecentEvents(): RecentEvents {
  let before: Position | undefined
  let events: SentEvent[] = []
  let length = 0

  return {
    begin(position) {
      before = position
      events = []
      length = 0
    },
    add(added) {
      events.push(...added)
      for (const { text } of added) length += text.length
      let dropped = 0
      while (events.length - dropped > maxEvents || length > maxLength) {
        const { position, text } = events[dropped++] as SentEvent
        before = position
        length -= text.length
      }
      events.splice(0, dropped)
    },
    after(position) {
      const last = events.findLastIndex((event) => event.position === position)
      if (last === -1 && position !== before) return undefined
      return events
        .slice(last + 1)
        .map(({ text }) => text)
        .join('')
    },
  }
}
