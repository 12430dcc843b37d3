import type { StoredPlant } from '../contract/shapes.ts'

/** Names a place in the journal: 1 to 64 of `[A-Za-z0-9_-]`, for the store alone to read. */
export type Position = string

export type EventType = 'plant.created' | 'plant.replaced' | 'plant.deleted'

/** A change that succeeded. */
export interface JournalEvent {
  readonly position: Position
  readonly type: EventType
  readonly at: number
  /** The plant as it is after the change, or as it was before its delete. */
  readonly plantJson: string
  /** The token that made the change; undefined for a command on this machine. */
  readonly tokenId: string | undefined
}

/** The plant of a change, with all digits of its id. */
export function toPlant({ plantJson }: JournalEvent): StoredPlant {
  const id = BigInt(plantJson.slice('{"id":'.length, plantJson.indexOf(',')))
  return { ...JSON.parse(plantJson), id }
}

/** A part of the journal, from a place before its first event to one after its last. */
export interface JournalPage {
  readonly begin: Position
  readonly events: readonly JournalEvent[]
  readonly end: Position
  /** Whether it is known that nothing follows now. */
  readonly isLast: boolean
}

/** Whether changes are written to the journal. A command leaves this as it is. */
export type Journaling = 'on' | 'off' | 'as before'
