import type { Claim, NewDelivery, Receiver, ReceiverStore, Taken } from '../store/receivers.ts'
import { type JournalEvent, type JournalPage, toPlantId } from '../store/store.ts'
import { type Queue, toKnownRow, toNewRow } from './queue.ts'

/** Fills the queue of a receiver: with its deliveries in the store, then from the journal. */
export interface Feed {
  /** Whether there may be something to read, and room for it. */
  hasDemand(): boolean
  /** Reads deliveries of the store, or a page of the journal. Returns what to take of it. */
  read(): Promise<Taken | undefined>
  /** Continues after what was taken. */
  endTake(taken: Taken): void
  /** The position to save, if it has moved. */
  takePosition(): Taken | undefined
  /** The journal may have more, or was not read or taken. */
  wake(): void
  /** The store may have deliveries that the queue does not know. */
  reload(): void
}

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

/** How long a position that has only passed unwanted changes waits to be saved. */
const positionMs = 1_000
/** To insert many rows together, a take waits until this part of the queue is free, or all sent. */
const freePart = 1 / 4
const gapReason = 'a gap: some changes were no longer kept and have not been sent'

export function openFeed(options: FeedOptions): Feed {
  const { receiver, claim, queue, maxRows, store, readPage } = options
  const types = new Set<string>(receiver.types)
  /** The position after which the journal is read. */
  let after = receiver.progress.position
  /** The position in the store, as far as this process knows. */
  let savedPosition = after
  /** Later changes that release 1.1.0 has delivered. */
  let ahead = new Set(receiver.progress.ahead)
  /** When it moved away from the saved position. */
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
    const { rows, busy } = queue.counts
    const isIdle = busy === 0 && queue.peek() === undefined
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
    const left = new Set(ahead)
    let { rows } = queue.counts
    let position = begin
    for (const event of page.events) {
      const isKnown = left.delete(event.position) || queue.has(event.position)
      if (types.has(event.type) && !isKnown) {
        if (rows++ >= maxRows()) break
        deliveries.push(toNewDelivery(event))
      }
      position = event.position
    }
    const before = savedPosition
    const taken = { ...claim, before, position, ahead: [...left], deliveries, gap }
    if (deliveries.length > 0 || gap !== undefined) return taken
    // A commit during the read may have set this already.
    mayRead ||= page.events.length > 0
    moveTo(taken)
    return undefined
  }

  /** The position is saved with the next wanted change, or after `positionMs`. */
  function moveTo(taken: Taken): void {
    if (after === savedPosition) movedAt = performance.now()
    after = taken.position
    ahead = new Set(taken.ahead)
  }

  function takePosition(): Taken | undefined {
    if (after === savedPosition) return undefined
    const moved = { before: savedPosition, position: after, ahead: [...ahead] }
    return { ...claim, ...moved, deliveries: [], gap: undefined }
  }

  return {
    hasDemand: () => needsLoad() || needsPage() || isPositionDue(),
    async read() {
      if (needsLoad()) await options.inTurn(load)
      const taken = needsPage() ? await readJournal() : undefined
      return taken ?? (isPositionDue() ? takePosition() : undefined)
    },
    endTake(taken) {
      mayRead = true
      savedPosition = taken.position
      moveTo(taken)
      for (const delivery of taken.deliveries) queue.add(toNewRow(delivery))
    },
    takePosition,
    wake() {
      mayRead = true
    },
    reload() {
      isStale = true
    },
  }
}

function toNewDelivery(event: JournalEvent): NewDelivery {
  const { position, type, at, plantJson } = event
  return { position, type, at, plantId: toPlantId(event), body: plantJson }
}
