import { toOrder } from '../journal/position.ts'
import type { Claim, NewDelivery, Receiver, ReceiverStore, Taken } from '../store/receivers.ts'
import { type JournalEvent, type JournalPage, toPlantId } from '../store/store.ts'
import { type Queue, toKnownRow, toNewRow } from './queue.ts'

export interface FeedOptions {
  readonly receiver: Receiver
  readonly claim: Claim
  readonly store: Pick<ReceiverStore, 'listDeliveries'>
  readonly readPage: (after: string) => Promise<JournalPage | 'gone' | 'off'>
  readonly queue: Queue
  /** How many rows the queue may have. */
  readonly maxRows: () => number
  /** Runs a step when no save is in progress: what it reads would be out of date. */
  readonly inTurn: (step: () => Promise<void>) => Promise<void>
}

/** How long a position waits to be saved if it has only passed unwanted changes. */
const positionMs = 1_000
/** To insert many rows together, a take waits until this part of the queue is free, or all sent. */
const freePart = 1 / 4
const gapReason = 'a gap: some changes were no longer kept and have not been sent'

/** Fills the queue of a receiver: with its deliveries in the store, then from the journal. */
export function openFeed(options: FeedOptions) {
  const { receiver, claim, queue, maxRows, store, readPage } = options
  const types = new Set<string>(receiver.types)
  /** The position after which the journal is read. */
  let after = receiver.progress.position
  /** The position that this process last read from the store, or saved there. */
  let savedPosition = after
  /** Later changes that release 1.1.0 has delivered. */
  const { ahead } = receiver.progress
  /** When `after` moved away from `savedPosition`. */
  let movedAt = 0
  /** Whether the queue lacks deliveries of the store. */
  let isStale = true
  /** Whether the store may have more deliveries than the queue. The journal waits for them. */
  let hasMore = true
  let mayRead = true

  function needsLoad(): boolean {
    return isStale || (hasMore && hasRoom())
  }

  function needsPage(): boolean {
    return mayRead && !hasMore && hasRoom()
  }

  function isPositionDue(): boolean {
    return after !== savedPosition && performance.now() - movedAt >= positionMs
  }

  function hasRoom(): boolean {
    const rows = queue.countRows()
    const isIdle = queue.countBusy() === 0 && queue.peek() === undefined
    return isIdle ? rows < maxRows() : rows <= maxRows() * (1 - freePart)
  }

  async function load(): Promise<void> {
    isStale = false
    try {
      const limit = maxRows()
      const found = await store.listDeliveries(claim.id, 'waiting', limit + 1)
      hasMore = found.length > limit
      const now = Date.now()
      queue.reset(found.slice(0, limit).map((delivery) => toKnownRow(delivery, now)))
    } catch (error) {
      isStale = true
      throw error
    }
  }

  async function readJournal(): Promise<Taken | undefined> {
    mayRead = false
    const page = await readPage(after)
    if (page === 'off') return undefined
    if (page !== 'gone') return choose(page, after, undefined)
    // Continues from the oldest change that is kept.
    const oldest = await readPage('oldest')
    return typeof oldest === 'string' ? undefined : choose(oldest, oldest.begin, gapReason)
  }

  /** Chooses the wanted changes of a page, as many as there is room for. */
  function choose(page: JournalPage, begin: string, gap: string | undefined): Taken | undefined {
    const deliveries: NewDelivery[] = []
    let rows = queue.countRows()
    let position = begin
    for (const event of page.events) {
      const isKnown = ahead.includes(event.position) || queue.has(event.position)
      if (types.has(event.type) && !isKnown) {
        if (rows++ >= maxRows()) break
        deliveries.push(toNewDelivery(event))
      }
      position = event.position
    }
    if (deliveries.length > 0 || gap !== undefined) return toTaken(position, deliveries, gap)
    // A commit during the read may have set this already.
    mayRead ||= page.events.length > 0
    // The position is saved with the next wanted change, or after `positionMs`.
    if (after === savedPosition) movedAt = performance.now()
    after = position
    return undefined
  }

  function toTaken(position: string, deliveries: NewDelivery[], gap: string | undefined): Taken {
    const place = toOrder(position)
    const left = ahead.filter((one) => toOrder(one) > place)
    return { ...claim, before: savedPosition, position, ahead: left, deliveries, gap }
  }

  /** The position to save, if it has moved. */
  function takePosition(): Taken | undefined {
    return after === savedPosition ? undefined : toTaken(after, [], undefined)
  }

  return {
    /** Whether there may be something to read, and room for it. */
    hasDemand: () => needsLoad() || needsPage() || isPositionDue(),
    /** Reads deliveries of the store, or a page of the journal. Returns what to take of it. */
    async read(): Promise<Taken | undefined> {
      if (needsLoad()) await options.inTurn(load)
      const taken = needsPage() ? await readJournal() : undefined
      return taken ?? (isPositionDue() ? takePosition() : undefined)
    },
    /** Continues after what was taken. */
    endTake(taken: Taken): void {
      mayRead = true
      savedPosition = taken.position
      after = taken.position
      for (const delivery of taken.deliveries) queue.add(toNewRow(delivery))
    },
    takePosition,
    /** The journal may have more, or was not read or taken. */
    wake(): void {
      mayRead = true
    },
    /** The store may have deliveries that the queue does not know. */
    reload(): void {
      isStale = true
    },
  }
}

function toNewDelivery(event: JournalEvent): NewDelivery {
  const { position, type, at, plantJson } = event
  return { position, type, at, plantId: toPlantId(event), body: plantJson }
}
