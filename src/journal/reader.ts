/**
 * Follows the journal for many followers. Streams of events and `log --follow` are loops over it:
 *
 *   for await (const page of reader.follow(position, signal)) use(page)
 *
 * What it promises. A follower gets every change after its position once and in order, a page at a
 * time, and asks for the next page once it has consumed the previous one. The loop ends with its
 * signal, or after 'gone' (the position was trimmed away, or is of another journal, as after a
 * restore) or 'off' (another process has switched the journal off). The reader saves nothing: after
 * a kill, a follower returns with the end of the last page that it has used.
 *
 * Behind, live. A follower is behind until it gets the last page, and live from then on. It waits
 * without reading if nothing was announced since that page was read: `wakes` tells. The store
 * announces changes, and `wakeMs` later (5 ms, 20 with 1,000 followers) all that wait read again.
 *
 * Pace. Reads for those behind stand in line, and each has a turn of the event loop. A live
 * follower reads at once. 32 followers get a page in a turn. So a request waits for few of them,
 * however many there are, and however far behind.
 *
 * Sharing. Followers at one position get the same page, with the bytes that the first one has made
 * of it. The last few pages are kept for those that come a little later: a page never changes, and
 * stays valid after its rows are trimmed. But a failover may undo its changes, so a page counts
 * only in the session of the store that it was read in. A follower behind, whose position is inside
 * a page, gets the rest of that page, and is then where the others are. The sender of webhooks,
 * which loops at a pace of its own, shares these pages through `read`.
 *
 * Failures. While the store is away, live followers wait: a read that failed is repeated after
 * 250 ms. A follower behind gets the error. A stream of events does not wait as long: it ends when
 * its token can no longer be verified, after about 1 s, and its client reconnects.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Position, toCursor, toPosition } from './position.ts'
import type { JournalEvent, JournalPage } from './row.ts'

/** A page that all followers at one position get. */
export interface SharedPage extends JournalPage {
  /** Its changes as they are sent, made by the first follower that sends them. */
  bytes?: Buffer
}

/** A page of changes; or why there is none, and never will be. */
export type PageOrEnd = SharedPage | 'gone' | 'off'

export interface JournalReader {
  /** Every page after a position, as soon as it is there, until the signal aborts. */
  follow(after: Position | 'oldest', signal: AbortSignal): AsyncGenerator<PageOrEnd, void, void>
  /** The page after a position, perhaps an empty one, as it was at the last poll at the latest. */
  read(after: Position | 'oldest'): Promise<PageOrEnd>
}

/** The part of a store that the reader needs. */
export interface JournalSource {
  readJournal(after: Position | 'oldest', limit: number): Promise<JournalPage | 'gone' | 'off'>
  watchJournal(onChange: () => void): () => void
  journalSession?(): unknown
}

/** A page that is being read, or is kept. */
interface Reading {
  readonly after: Position | 'oldest'
  /** How often those who wait had been woken when it began. */
  readonly wakes: number
  readonly read: Promise<PageOrEnd>
  /** Once it is kept. */
  page?: SharedPage
}

const pageEvents = 256
const maxKept = 8
/** How many followers get a page in one turn of the event loop. */
const followersPerTurn = 32
/** Changes this close together are read together: 5 ms, and up to 15 more for 1,000 followers. */
const wakeMs = 5
const wakeMsPerFollower = 0.015
/** How long live followers wait after a read has failed. */
const retryMs = 250

export function buildReader(store: JournalSource): JournalReader {
  /** The last pages, and those that are being read. */
  let readings: Reading[] = []
  let session: unknown
  /** The reads that stand in line, by position, and the end of the line. */
  const inLine = new Map<Position | 'oldest', Promise<Reading>>()
  let lineEnd: Promise<unknown> = Promise.resolve()
  let turn = Promise.resolve()
  let placesInTurn = followersPerTurn
  let followers = 0
  const waiting = new Set<() => void>()
  let wakes = 0
  let wakeTimer: NodeJS.Timeout | undefined
  let retryTimer: NodeJS.Timeout | undefined
  let stopWatching = () => {}

  async function* follow(after: Position | 'oldest', signal: AbortSignal) {
    let isLive = false
    let resume = () => {}
    const leave = () => resume()
    signal.addEventListener('abort', leave)
    if (followers++ === 0) watch()
    try {
      while (!signal.aborted) {
        const reading: Reading = isLive ? share(after) : await shareInLine(after)
        let page: PageOrEnd | undefined
        try {
          page = await reading.read
        } catch (error) {
          if (!isLive && !signal.aborted) throw error
          retryTimer ??= setTimeout(wake, retryMs).unref()
        }
        if (typeof page === 'string') return void (yield page)
        if (page !== undefined && page.events.length > 0) {
          await takeTurn()
          if (signal.aborted) return
          yield page
          after = page.end
        }
        isLive = page?.isLast ?? isLive
        if (!isLive || reading.wakes < wakes || signal.aborted) continue
        await new Promise<void>((resolve) => {
          resume = resolve
          waiting.add(resolve)
        })
      }
    } finally {
      signal.removeEventListener('abort', leave)
      waiting.delete(resume)
      if (--followers === 0) stopWatch()
    }
  }

  function watch(): void {
    // While nobody followed, nothing was announced.
    wakes++
    stopWatching = store.watchJournal(() => {
      wakeTimer ??= setTimeout(wake, wakeMs + followers * wakeMsPerFollower).unref()
    })
  }

  function stopWatch(): void {
    stopWatching()
    stopTimers()
    readings = []
  }

  function stopTimers(): void {
    clearTimeout(wakeTimer)
    clearTimeout(retryTimer)
    wakeTimer = undefined
    retryTimer = undefined
  }

  function wake(): void {
    stopTimers()
    wakes++
    for (const resume of waiting) resume()
    waiting.clear()
  }

  /** Resolves in this turn of the event loop for some followers, in a later one for others. */
  function takeTurn(): Promise<void> {
    if (placesInTurn-- === 0) {
      turn = turn.then(() => nextTurn())
      placesInTurn = followersPerTurn - 1
    }
    return turn
  }

  /** The page after a position: one that is kept or being read, or else it is read now. */
  function share(after: Position | 'oldest'): Reading {
    const known = sharedReadings().findLast((one) => one.after === after)
    if (known !== undefined) return known
    const reading: Reading = { after, wakes, read: store.readJournal(after, pageEvents) }
    readings.push(reading)
    reading.read.then(
      (page) => keep(reading, page),
      () => drop(reading),
    )
    return reading
  }

  function sharedReadings(): readonly Reading[] {
    const current = store.journalSession?.()
    if (current !== session) readings = []
    session = current
    return readings
  }

  function keep(reading: Reading, page: PageOrEnd): void {
    // After a trim, another page is the oldest.
    if (typeof page === 'string' || page.events.length === 0 || reading.after === 'oldest') {
      drop(reading)
    } else {
      reading.page = page
      readings = readings.slice(-maxKept)
    }
  }

  function drop(reading: Reading): void {
    readings = readings.filter((one) => one !== reading)
  }

  /** Shares the page as well, but in turn: every follower that is behind waits in this line. */
  function shareInLine(after: Position | 'oldest'): Promise<Reading> {
    const known = inLine.get(after)
    if (known !== undefined) return known
    const reading = lineEnd.then(nextTurn).then(() => {
      inLine.delete(after)
      return findRest(after) ?? share(after)
    })
    inLine.set(after, reading)
    lineEnd = reading.then(({ read }) => read).catch(() => {})
    return reading
  }

  /** The rest of a kept page, if the position is within one. From its end on, followers share. */
  function findRest(after: Position | 'oldest'): Reading | undefined {
    for (const { page, wakes } of sharedReadings()) {
      if (page === undefined) continue
      const { end, isLast } = page
      const events = page.events.slice(page.events.findIndex((one) => one.position === after) + 1)
      if (events.length === 0 || events.length === page.events.length) continue
      return { after, wakes, read: Promise.resolve({ begin: after, events, end, isLast }) }
    }
    return undefined
  }

  return { follow, read: (after) => share(after).read }
}

/** The change at a position; undefined if there is none or it has been trimmed. */
export async function findEvent(
  store: Pick<JournalSource, 'readJournal'>,
  position: Position,
): Promise<JournalEvent | undefined> {
  const cursor = toCursor(position)
  if (cursor === undefined || cursor.index === 0) return undefined
  const page = await store.readJournal(toPosition({ ...cursor, index: cursor.index - 1 }), 1)
  if (typeof page === 'string') return undefined
  const [event] = page.events
  return event?.position === position ? event : undefined
}
